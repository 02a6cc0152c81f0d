"""Attacks on a synthetic table, each with a control group of real units that it was not made from."""
