"""The audit: attacks on the privacy claims that anybody can run again; `python -m tests.audit` writes AUDIT.md."""
