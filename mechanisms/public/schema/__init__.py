"""Schemas: columns, kinds, bins, hierarchies; public facts about a table, from YAML and back."""
