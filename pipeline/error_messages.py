"""What a person reads when something failed: one message for every kind of failure."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mechanisms.public.errors import UserError, shown
from pipeline.folders import RunFolder
from pipeline.help import HELPS
from pipeline.packages import OURS
from pipeline.plugins.offers import offered_by

#: How messages begin that refuse to go on in a run's folder.
REFUSED = ("hydra.run.dir: ", "budget.ledger: ")


def interrupted(error: BaseException) -> bool:
    """By Ctrl-C or SIGTERM, of which DuckDB tells in its own words where it was at work."""
    return isinstance(error, KeyboardInterrupt) or str(error) == "Query interrupted"


def explained(error: BaseException) -> str:
    """One message for every kind of failure: what, where, and the way out."""
    if isinstance(error, UserError):
        return shown(str(error), but="\n")
    if interrupted(error):
        return "interrupted\n  fix: start it again; a run whose measurements were kept says above how to go on"
    if isinstance(error, MemoryError):
        fix = "lower selection.max_cells or synthesis.rows (limits.memory_gb tells before the work starts)"
        return f"out of memory\n  fix: {fix}; or raise `ulimit -v`, where it is set"
    if isinstance(error, SystemExit):
        fix = "let it return, or raise UserError; HYDRA_FULL_ERROR=1 shows where"
        return f"a plugin ended the command (SystemExit)\n  fix: {fix}"
    full = isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
    if full and not getattr(error, "filename", None):
        return "the disk is full\n  fix: free some space, or another folder: hydra.run.dir=outputs/mine"
    if isinstance(error, OSError) and error.filename:
        fix = "free some space there" if full else "a folder that can be made and written: hydra.run.dir=outputs/mine"
        fix = "a shorter name" if error.errno == errno.ENAMETOOLONG else fix
        return f"{error.filename}: {error.strerror}\n  fix: {fix}"
    if type(error).__module__.partition(".")[0] in {"hydra", "omegaconf"}:  # not loaded for their names alone
        where, line = getattr(error, "full_key", None) or "settings", str(error).strip().partition("\n")[0]
        return f"{where}: {line}\n  fix: {HELPS}"
    if isinstance(error, RuntimeError) and "home directory" in str(error):  # of pathlib, of a path with ~
        return "a path begins with ~, and there is no home folder of that name\n  fix: the path from / on"
    whose, shows = whose_fault(error), "HYDRA_FULL_ERROR=1 shows the traceback"
    return f"{type(error).__name__}: {error}\n  this is {whose}; {shows}"


def in_json(error: BaseException) -> str:
    """The same as one line of JSON, for who asked for format=json."""
    where, what, fix = (getattr(error, name, None) for name in ("where", "what", "fix"))
    text = explained(error)
    fields = {"error": what or text.partition("\n")[0], "where": where, "fix": fix or text.partition("\n  ")[2] or None}
    return json.dumps(fields, ensure_ascii=False)


def unquoted(error: BaseException) -> BaseException:
    """The error itself where its words are ours or the system's; of any other one its kind and its place alone.

    Guarantee: no words that a library, a plugin or a fault of ours made of a value of the rows.
    """
    in_our_words = isinstance(error, UserError | MemoryError | SystemExit) or interrupted(error)
    of_the_system = isinstance(error, OSError) and error.errno is not None and not _through_others(error)
    if in_our_words or of_the_system or type(error).__module__.partition(".")[0] in {"hydra", "omegaconf"}:
        return error
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    problem = f"{type(error).__name__}{place}: {whose_fault(error)}"
    fix = "its words may quote rows: they stand in internal/run.log, and console=always prints them; keep both back"
    return UserError(problem, where="run", fix=fix)


def _through_others(error: BaseException) -> bool:
    """Whether it passed code that is not ours while a plugin is loaded: a file that it opens may be named by a row."""
    return bool(offered_by) and not {*_packages(error)} <= {*OURS, *sys.stdlib_module_names}


def _packages(error: BaseException) -> list[str]:
    """The packages whose code an error passed, from where it was caught to where it was raised."""
    names = (str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__))
    return [name.partition(".")[0] for name in names]


def whose_fault(error: BaseException) -> str:
    """A plugin whose code, libraries aside, was the last that an error nobody foresaw came from.

    Else the pipeline, or the plugin that called it; or, of what it was given, any plugin that is loaded.
    """
    others = {module.partition(".")[0] for module in offered_by.values()}
    passed = [name for name in _packages(error) if name in {*OURS, *others}]
    if passed[-1:] and passed[-1] in others:
        return f"a fault of the plugin {passed[-1]}"
    named = [name for name in reversed(passed) if name in others][:1] or sorted(others)  # what it gave may be wrong
    theirs = f"or of the plugin {' or '.join(named)}, " if named else ""
    return f"a fault of the pipeline, {theirs}not of yours"


@contextmanager
def unquoted_unless(rows_may_show: bool) -> Iterator[None]:
    """Errors leave without words, or errors behind them, that may quote rows; as they are where these may be told."""
    try:
        yield
    except BaseException as error:  # a fault in a library written in Rust is no Exception
        if rows_may_show:
            raise
        raise unquoted(error) from None


def show_what_can_be_shown() -> None:
    """A terminal without ε or δ shows a ? for them, a closed one nothing: no run ends over its last lines."""
    sys.stdout, sys.stderr = (s or Path(os.devnull).open("w") for s in (sys.stdout, sys.stderr))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def say_what_is_safe(root: Path, message: str = "") -> None:
    """After a failure: what was measured is kept, and going on with it costs nothing more.

    Args:
        message: the message; where it refuses the folder or its booking, the way out is its own.
    """
    if message.startswith(REFUSED):
        return
    if (folder := RunFolder(root)).charged:
        free = (
            "evaluation.* may differ"
            if folder.released
            else "synthesis.*, release.*, evaluation.* and statement.* may differ"
        )
        way = f"go on at no further cost with its settings\n  ({free}) and hydra.run.dir={root} resume=true"
        print(f"  the measurements of the run in {root} are kept and stay spent; {way}", file=sys.stderr)
    elif ledgers := sum(1 for _ in root.rglob("internal/ledger.jsonl")):  # an experiment's
        print(f"  the measurements of runs in {root} are kept and stay spent: {ledgers:,} below it", file=sys.stderr)
