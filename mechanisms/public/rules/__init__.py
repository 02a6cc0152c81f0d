"""Rules of a schema beyond its columns: what follows from what, what cannot be, who rows belong to."""
