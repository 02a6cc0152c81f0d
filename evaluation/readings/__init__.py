"""How a score reads: its references, its interval, and a label in plain words."""
