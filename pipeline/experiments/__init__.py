"""Experiments: published tables and figures again, on our own data, with one command each (`experiment=NAME`)."""
