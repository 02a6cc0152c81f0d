"""The command line; a user's mistake is one clear message and exit code 1."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from mechanisms.public.errors import UserError, choices_fix
from mechanisms.public.tables.fetched import check_no_secret
from pipeline import error_messages
from pipeline.conf_folder import with_own_folder
from pipeline.error_messages import explained, show_what_can_be_shown
from pipeline.help import COMMANDS, help_text
from pipeline.version import __version__

if TYPE_CHECKING:
    from pipeline.commands.asked_commands import Work

#: Libraries leave a million objects that stay: to look for garbage among them took a tenth of a small command's time.
COLLECTED = 100_000
#: Matrix products are small here: threads of the library that makes them wait for each other, spinning, and on another
#: number of cores it rounds their sums in another way.
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "1")
#: What a shell adds to the number of the signal that ended a command, for its exit code.
BY_SIGNAL = 128
#: SIGINT or SIGTERM, once it came: what fails behind it fails by it. DuckDB tells of "Query interrupted", and a
#: compilation that is broken off of an object that is not there.
_CAME: list[int] = []


def main(argv: Sequence[str]) -> int:
    """Run one command; returns the exit code: 0, or 1 (Ctrl-C: 130, SIGTERM: 143) with a message on standard error."""
    os.environ.setdefault(*ONE_THREAD)  # before numpy is loaded
    show_what_can_be_shown()
    gc.set_threshold(COLLECTED)
    _CAME.clear()
    try:
        if callable(signal.getsignal(signal.SIGINT)):  # not where somebody ignores it
            signal.signal(signal.SIGINT, _ended_by)
        code = _main(argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except BaseException as error:
        with suppress(OSError):  # it would be flushed again at the end
            sys.stdout.close() if isinstance(error, OSError) and not error.filename else sys.stdout.flush()
        return _failed(error, in_json="format=json" in argv)


def end_with(argv: Sequence[str]) -> NoReturn:
    """Run one command, which ends the process: objects are not taken apart one by one, which takes long after a run."""
    code = main(argv)
    atexit._run_exitfuncs()
    os._exit(code)


def _main(argv: Sequence[str]) -> int:
    if not argv or argv[0] in {"-h", "--help", "help"}:
        print(help_text(None), end="")
        return 0 if argv else 1
    if argv[0] == "--version":
        print(__version__)
        return 0
    command, rest = argv[0], list(argv[1:])
    if command in COMMANDS and {"-h", "--help"} & set(rest):
        print(help_text(command, rest), end="")
        return 0
    signal.signal(signal.SIGTERM, _ended_by)
    if command not in COMMANDS:
        fix = choices_fix(command, COMMANDS)
        raise UserError(f"no command {command!r}", where="python -m pipeline", fix=fix)
    for argument in rest:
        check_no_secret(argument, "an argument")
    _given_once(rest)
    rest = with_own_folder(rest)
    unknown = [a for a in rest if a.startswith("-") and not (command == "run" and a in {"-m", "--multirun"})]
    if unknown:
        fix = "setting=value, --help" + (", or -m for a sweep" if command == "run" else "")
        raise UserError(f"no flag {unknown[0]!r}", where=f"python -m pipeline {command}", fix=fix)
    from pipeline.commands import asked_commands  # help is answered without the settings library

    work: Work = getattr(asked_commands, command)(rest)
    return work()


def _given_once(arguments: Sequence[str]) -> None:
    """Refuse two values of one setting: the last one would count, and nothing would say so."""
    values: dict[str, str] = {}
    for argument in arguments:
        name, sign, value = argument.lstrip("+").partition("=")
        if sign and values.setdefault(name, value) != value:
            raise UserError(f"given twice: {values[name]} and {value}", where=name, fix="one of the two")


def _ended_by(signum: int, frame: FrameType | None) -> None:
    _CAME.append(signum)
    raise KeyboardInterrupt


def _failed(error: BaseException, in_json: bool) -> int:
    """Say what went wrong on standard error; the traceback only with HYDRA_FULL_ERROR=1."""
    if os.environ.get("HYDRA_FULL_ERROR") == "1":
        traceback.print_exception(error)
    error = KeyboardInterrupt() if _CAME else error
    print(error_messages.in_json(error) if in_json else f"error: {explained(error)}", file=sys.stderr)
    if error_messages.interrupted(error):
        return BY_SIGNAL + (_CAME or [signal.SIGINT])[-1]
    code = error.code if isinstance(error, SystemExit) else 1
    return code if isinstance(code, int) and code else 1  # an end without one, as of a plugin, is no success
