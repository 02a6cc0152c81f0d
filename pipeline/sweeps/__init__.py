"""Sweeps: many runs with one command, in parallel, each on its own; one table and one report of all of them."""
