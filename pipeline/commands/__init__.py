"""The commands: one table of them, their arguments checked first, then the work."""
