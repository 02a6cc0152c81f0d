"""The budget of several runs: what a command books in a shared ledger before it charges anything, and what is left."""
