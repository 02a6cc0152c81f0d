"""What touches raw rows: the word in the import path is the warning."""
