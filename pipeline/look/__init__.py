"""A look at a table before anything is spent: what its schema would do to it, and rows that are nobody's."""
