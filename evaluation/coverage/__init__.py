"""What is rare in the real columns, and how much of it the synthetic ones have too."""
