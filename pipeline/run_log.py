"""The log of a run, which keeps what may quote rows: the pipeline's lines, tracebacks, and what Python warns of."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


@contextmanager
def logged(path: Path) -> Iterator[None]:
    """What the pipeline logs goes to this file (mode 0600), with the traceback of a failure.

    So do warnings of Python and of libraries, which come where rows are odd, and errors that stop nothing, of threads
    and of deletions: they are shown nowhere else. Threads that run already are the caller's.
    """
    log, others = logging.getLogger("pipeline"), logging.getLogger()
    path.touch(mode=0o600)
    handler = _LogFile(path, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    others.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    before = warnings.showwarning, threading.excepthook, sys.unraisablehook
    callers = {*threading.enumerate()}

    def of_thread(failed: threading.ExceptHookArgs) -> None:
        (before[1] if failed.thread in callers else _log_error)(failed)

    warnings.showwarning, threading.excepthook, sys.unraisablehook = _log_warning, of_thread, _log_error
    try:
        yield
    except BaseException:
        log.exception("the run failed")
        raise
    finally:
        warnings.showwarning, threading.excepthook, sys.unraisablehook = before
        log.removeHandler(handler)
        others.removeHandler(handler)
        with suppress(OSError):  # a full disk: the error that filled it is the one to see
            handler.close()


def _log_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any
) -> None:
    """A warning of Python as a line of the log; takes what `warnings` hands over."""
    logging.getLogger("pipeline").warning(warnings.formatwarning(message, category, filename, lineno).rstrip())


def _log_error(failed: threading.ExceptHookArgs | sys.UnraisableHookArgs) -> None:
    """An error that stops nothing as lines of the log."""
    logging.getLogger("pipeline").error("an error that stops nothing", exc_info=failed.exc_value)


class _LogFile(logging.FileHandler):
    """A log that loses lines on a full disk and says nothing: what else cannot be written is the message."""

    def handleError(self, record: logging.LogRecord) -> None:  # the name that logging calls
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)
