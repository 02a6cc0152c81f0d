"""`python -m pipeline`."""

import sys
from pathlib import Path

from pipeline.packages import OURS, stranger

if __name__ == "__main__":
    if problem := stranger([name for name in OURS if name != "pipeline"], Path(__file__).resolve().parent.parent):
        sys.exit(problem)
    from pipeline.cli import main

    sys.exit(main(sys.argv[1:]))
