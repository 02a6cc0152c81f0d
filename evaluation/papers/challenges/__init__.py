"""The official scorers of the NIST challenges of 2018 and 2020-21."""
