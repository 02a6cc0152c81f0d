"""Which marginals are measured: one file per method; sees answers through a Protocol, and never a row."""
