"""Drafts of schemas, guessed from a table: NOT private, for a person to correct and confirm."""
