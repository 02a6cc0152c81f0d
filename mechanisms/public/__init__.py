"""Words that everyone uses; this room holds no rows and imports nothing of ours."""
