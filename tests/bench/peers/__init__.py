"""Our benchmark against other libraries, each in an environment of its own: `python -m tests.bench.peers`."""
