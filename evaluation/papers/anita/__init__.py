"""ANITA's privacy and sequences (its n-way accuracy is the core's: evaluation/accuracy)."""
