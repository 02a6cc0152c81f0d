"""Settings: composed by Hydra, typed, checked, and made into what the rooms take."""
