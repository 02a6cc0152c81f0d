"""What a release says about itself: the statement, its pages and records, and the seals that bind them."""
