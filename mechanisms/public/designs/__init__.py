"""Which marginals to measure: designs from public facts and from distances that were released."""
