"""Several tables or jobs beside each other: scored, sorted, on one page. NOT private."""
