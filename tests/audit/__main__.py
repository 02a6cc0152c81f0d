"""The whole audit; writes AUDIT.md: what was attacked, at which commit, and the figures."""

import sys

from tests.audit.whole import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
