"""Tables on disk and their codes: scan, encode, decode, write."""
