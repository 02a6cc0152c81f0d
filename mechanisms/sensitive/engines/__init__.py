"""Engines: who reads the rows, encodes, clips and counts them; what they hand on is the same to the last bit."""
