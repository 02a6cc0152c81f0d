"""Tests of the sensitive room."""
