"""Numbers about privacy loss; imports the public room only."""
