"""What people read: pages, tables for the terminal, and the last lines of a run. NOT private where rows were read."""
