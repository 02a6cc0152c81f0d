"""The n-way accuracy of a table in buckets (ANITA), and the buckets."""
