"""The values of tables, for metrics whose definition speaks of values; and buckets of them for the other metrics."""
