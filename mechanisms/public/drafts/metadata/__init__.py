"""Drafts of schemas from metadata that offices have already; they read no rows."""
