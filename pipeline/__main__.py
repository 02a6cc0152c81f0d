"""`python -m pipeline`."""

import os
import signal
import sys
from pathlib import Path

from pipeline.packages import OURS, stranger

if __name__ == "__main__":
    if (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):  # while libraries load there is nothing to tidy up
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    if problem := stranger([name for name in OURS if name != "pipeline"], Path(__file__).resolve().parent.parent):
        sys.exit(problem)
    from pipeline.cli import end_with

    end_with(sys.argv[1:])
