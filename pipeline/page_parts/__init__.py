"""Parts of pages that show two or more tables beside each other: header cards, pictures, what is valid."""
