"""The two folders of a run: `release/` holds only what crossed the wall, `internal/` holds what saw raw rows.

A folder is for one command at a time: locked before anything in it is looked at, and as it was after a mistake.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict, no_empty_folders, write_whole
from mechanisms.public.posix import fcntl
from mechanisms.public.tables.engine_instances import shared_engine

BANNER = """NOT PRIVATE. Everything in this folder was made with sight of the raw rows: scores, logs, temporary copies.
Do not publish it and do not share it. What may leave lies in folders called release, under the terms of the
privacy.json in each.
"""
#: The file that says what may become of a folder: with rows in it, and of a run that reads none.
SEEN, UNSEEN = "NOT_PRIVATE.txt", "NO_TABLE_READ.txt"
#: The made-up rows of a rehearsal, in its folder.
REHEARSAL = "rehearsal.csv"
#: The setting that names a run's folder.
WHERE = "hydra.run.dir"
#: Under a run's internal/: the random name of its booking in a shared budget, there before the booking is.
BOOKING = "booking.json"
#: How the files begin that a command writes and may replace: reports and their drawings, scores, answers as JSON.
PAGES, SCORES = ("<!doctype html", "<svg"), ('{\n "format": "scores/', "not_private,table,part,of,figure,value\n")
ANSWER = '{\n "format": "answer/'
#: What a run keeps under internal/ once it may have charged something.
CHARGED = ("ledger.jsonl", "answers", "rows", "tries", "withheld.json")
#: The file that is locked.
LOCK = "lock"


@dataclass(frozen=True)
class Below:
    """An attribute that is a path below the `root` of its object."""

    parts: str

    def __get__(self, holder: Any, kind: type | None = None) -> Path:
        return Path(holder.root / self.parts)


@dataclass(frozen=True)
class RunFolder:
    """Where one run keeps its things."""

    root: Path

    release = Below("release")
    internal = Below("internal")
    temporary = Below("internal/tmp")
    answers = Below("internal/answers")
    ledger = Below("internal/ledger.jsonl")
    manifest = Below("internal/manifest.json")
    log = Below("internal/run.log")
    #: What the schema does to the rows.
    look = Below("internal/check.txt")
    #: All last lines, of which the console shows the first.
    summary = Below("internal/summary.txt")
    scores = Below("internal/scores.json")
    #: What the report draws.
    figures = Below("internal/figures.json")
    #: How the synthesizer came closer to the noisy answers.
    convergence = Below("internal/convergence.json")
    report = Below("internal/report.html")
    #: What a run spent whose release was not accepted.
    withheld = Below("internal/withheld.json")
    #: Digests of the files of `release/`, as they were written.
    seal = Below("internal/release.json")

    @property
    def released(self) -> bool:
        """Whether a release was made here, even if it is gone, or a link leads nowhere."""
        return os.path.lexists(self.release) or self.seal.exists()

    @property
    def charged(self) -> bool:
        """Whether something may have been charged here: a ledger is on disk before its first charge."""
        return os.path.lexists(self.release) or any((self.internal / name).exists() for name in CHARGED)


def sweep_results(folder: Path) -> Path | None:
    """The file of the results that a sweep left here; None where none did."""
    files = (folder / part / "results.parquet" for part in ("internal", "."))
    return next((file for file in files if file.is_file()), None)


@contextmanager
def claimed(root: Path, *, resume: bool, public: str | None = None) -> Iterator[RunFolder]:
    """The folder, made, closed to others (mode 0700 under `internal/`) and locked against a second process.

    A mistake that ends the run before anything was charged leaves nothing of it in the folder.

    Args:
        public: of a run that reads no table: which of its files may be published, for the file that says so.
    Raises:
        UserError: the folder holds a run already and `resume` is off; there is nothing to resume; another process is
            at work in it; it cannot be written.
    """
    folder = RunFolder(root)
    not_in_release(folder.internal, WHERE)
    alone = held(folder.internal, WHERE, who="process", unless=lambda: folder.charged, but={BOOKING})
    with alone, _begun(folder, resume, public), shared_engine(folder.temporary / "engine"):
        yield folder


@contextmanager
def _begun(folder: RunFolder, resume: bool, public: str | None) -> Iterator[None]:
    _check_state(folder, resume)
    if not folder.released and folder.internal.stat().st_dev != folder.root.stat().st_dev:
        problem = f"{folder.internal} lies on another file system: release/ could not be moved out of it whole"
        raise UserError(problem, where=WHERE, fix="a folder on that file system, with its own internal/")
    try:
        if not folder.charged:
            folder.manifest.unlink(missing_ok=True)  # of a run that spent nothing: it binds nobody
        _say_what_may_leave(folder.internal, public)
        shutil.rmtree(folder.temporary, ignore_errors=True)
        folder.temporary.mkdir(mode=0o700)
    except OSError as error:
        raise unwritable(folder.root, error, WHERE) from error
    try:
        yield
    finally:
        shutil.rmtree(folder.temporary, ignore_errors=True)


def _say_what_may_leave(inside: Path, public: str | None) -> None:
    """One file of the two; what a run left here that read rows keeps its own."""
    if public is None:
        (inside / UNSEEN).unlink(missing_ok=True)
        write_whole(inside / SEEN, BANNER)
    elif not (inside / SEEN).exists():
        write_whole(inside / UNSEEN, public)


def _check_state(folder: RunFolder, resume: bool) -> None:
    """A new run starts in a folder without one; a resumed one goes on with what is there."""
    started = folder.manifest.exists()
    if not folder.charged and (started or not resume):
        return
    if started and not resume:
        fix = "resume=true with the settings with which it began, to go on at no further cost; or another "
        fix += f"hydra.run.dir (this one is {folder.root})"
        raise UserError("this folder already holds a run", where=WHERE, fix=fix)
    if not started and os.path.lexists(folder.release):
        fix = f"another hydra.run.dir (this one is {folder.root})"
        raise UserError("this folder holds a release of something else", where=WHERE, fix=fix)
    if folder.charged and not started:  # its answers may be about another table, or protect other units
        fix = f"another hydra.run.dir (this one is {folder.root}): a new run, with its own budget"
        problem = "this folder keeps charges or answers of a run, but its record of the settings and the table "
        raise UserError(f"{problem}(internal/manifest.json) is gone", where=WHERE, fix=fix)
    if resume and not started:
        fix = "hydra.run.dir=FOLDER of the interrupted run; or resume=false: a new run with its own budget"
        raise UserError(f"nothing to resume in {folder.root}", where="resume", fix=fix)


def check_free(root: Path) -> None:
    """Refuse a folder that a new run cannot start in, before anything is written there.

    Raises:
        UserError: it lies in a release, or holds a run or a release already.
    """
    not_in_release(root, WHERE)
    _check_state(RunFolder(root), resume=False)


def check_output(path: Path, where: str, *, own: Sequence[str] = ()) -> None:
    """Refuse to write over a file that this command did not write: it may be a table.

    Args:
        own: how files begin that it wrote itself, and may replace.

    Raises:
        UserError: another file or a folder is there; the path lies in a release folder.
    """
    not_in_release(path, where)
    if path.is_dir():
        raise UserError(f"{path} is a folder", where=where, fix=f"a file: {where}={path / 'NAME'}")
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            start = file.read(200)
    except OSError as error:
        raise UserError(f"{path} cannot be replaced ({error.strerror})", where=where, fix="another name") from error
    if not any(start.startswith(mark.encode()) for mark in own):
        fix = f"another name, or move it away{': only what this command wrote before is replaced' if own else ''}"
        raise UserError(f"there is a file already: {path}", where=where, fix=fix)


def not_in_release(path: Path, where: str, *, of: Path | None = None) -> None:
    """Refuse to write inside a folder that is published as a whole.

    Args:
        of: a run's folder, whose release need not be there yet.
    Raises:
        UserError: the path lies in a release folder.
    """
    place, own = Path(os.path.realpath(path)), of and Path(os.path.realpath(RunFolder(of).release))
    for parent in (place, *place.parents):
        if parent == own or ((parent / "privacy.json").is_file() and (parent / "measurements").is_dir()):
            fix = "another place: a release folder is published whole, and holds only what crossed the wall"
            raise UserError(f"{path} lies in the release folder {parent}", where=where, fix=fix)


def bind(folder: RunFolder, facts: Json, *, may_change: Callable[[str], bool] = lambda name: False) -> Json:
    """Bind the folder to settings and data: written when the run starts, compared when it is resumed.

    Args:
        facts: JSON values; those under "once" (random keys) are taken from the first run and not compared.
        may_change: whether a fact, by its name with dots, may be another one by now; that one binds from here on.

    Returns:
        The facts of the run, with what was drawn once.

    Raises:
        UserError: a setting or the data changed since; names what.
    """
    if not folder.manifest.exists():
        write_whole(folder.manifest, json.dumps(facts, indent=1, sort_keys=True), mode=0o600)
        return facts
    try:
        first: JsonDict = json.loads(folder.manifest.read_text())
    except ValueError as error:
        fix = "a new run, with its own budget"
        raise UserError("the record of the run's settings is damaged", where=str(folder.manifest), fix=fix) from error
    differ = sorted(changes(first, json.loads(json.dumps(facts))))
    if changed := [name for name in differ if not may_change(name)]:
        fix = "resume with the same settings and data; or another hydra.run.dir: a new run, which spends its own budget"
        if folder.release.exists() and all(c.startswith(("settings.synthesis.", "settings.release.")) for c in changed):
            fix += f"; other rows of a release cost nothing: python -m pipeline synth from={folder.release}"
        if all(c.startswith("settings.statement.") for c in changed):
            fix += f"; {folder.release} says who publishes it, and stays as it is; move it away, and the same command "
            fix += "writes one with these words from the same answers"
        raise UserError(f"changed since the run began: {', '.join(changed)}", where="resume", fix=fix)
    if differ:
        first = {**facts, "once": first["once"]}
        write_whole(folder.manifest, json.dumps(first, indent=1, sort_keys=True), mode=0o600)
    return first


def changes(first: Json, now: Json, prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Facts that differ, by their names with dots → what they were, and are; but for those that are drawn once.

    An empty text is as good as none: a synthesizer that takes no public table is another one's without it.
    """
    differ: dict[str, tuple[Any, Any]] = {}
    for key in (first.keys() | now.keys()) - {"once"}:
        left, right = (None if value == "" else value for value in (first.get(key), now.get(key)))
        if isinstance(left, dict) and isinstance(right, dict):
            differ |= changes(left, right, f"{prefix}{key}.")
        elif left != right:
            differ[f"{prefix}{key}"] = left, right
    return differ


@contextmanager
def whole_folder(target: Path, workdir: Path) -> Iterator[Path]:
    """A new folder that appears under its name only when it is complete.

    Args:
        target: the final folder; an older one is replaced.
        workdir: a folder on the same file system for the parts.
    """
    parts = workdir / f"{target.name}.partial"
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir(parents=True)
    yield parts
    if target.exists():
        shutil.rmtree(target)
    parts.chmod(0o755)
    parts.replace(target)


@contextmanager
def held(
    inside: Path, where: str, *, who: str, unless: Callable[[], bool], but: Collection[str] = ()
) -> Iterator[None]:
    """The folder, made, closed to others (mode 0700) and locked against a second process.

    After a user's mistake or an interruption, what is new in it is deleted, under the lock: a command that is refused
    because another one is at work takes nothing of that one away.

    Args:
        inside: the folder itself; messages name the one that it lies in.
        where: the setting that names it.
        who: what may be at work there already, for the message.
        unless: asked after the failure: what is there by then has to stay.
        but: names of files that stay in any case.
    Raises:
        UserError: another process is at work in it; it cannot be written.
    """
    with no_empty_folders(inside), _locked(inside, where, who):
        before = _names(inside) - {LOCK}
        try:
            yield
        except (UserError, KeyboardInterrupt):
            if not unless():
                for name in _names(inside) - before - set(but):
                    _removed(inside / name)
            raise


@contextmanager
def _locked(inside: Path, where: str, who: str) -> Iterator[None]:
    try:
        lock = _opened(inside / LOCK)
        inside.chmod(0o700)
    except OSError as error:
        raise unwritable(inside.parent, error, where) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = os.path.samestat(os.fstat(lock.fileno()), (inside / LOCK).stat())
        except (BlockingIOError, FileNotFoundError):
            mine = False
        if not mine:  # held by another one; or the lock of one that ended meanwhile and took it away
            fix = "wait for it, or use another folder"
            raise UserError(f"another {who} is at work in {inside.parent}", where=where, fix=fix)
        yield


def _opened(path: Path, tries: int = 10) -> TextIOWrapper:
    """The lock's file, in a folder that another command may take away at the same moment."""
    for _ in range(tries):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileNotFoundError):
            return path.open("w")
    return path.open("w")


def unwritable(root: Path, error: OSError, where: str) -> UserError:
    """That a folder cannot be written."""
    return UserError(f"cannot write in {root} ({error.strerror})", where=where, fix="another folder")


def _names(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()} if folder.is_dir() else set()


def _removed(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
