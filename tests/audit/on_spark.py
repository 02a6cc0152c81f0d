"""Runs on Spark whose tasks are lost after they wrote, run again, and run twice: what is drawn from stays the same."""

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from mechanisms.public.errors import UserError
from mechanisms.public.members import need_extra
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.scan import open_table
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.engines.spark_counts import CountCodes
from mechanisms.sensitive.engines.spark_engine import SparkSettings
from mechanisms.sensitive.engines.spark_files import KeepRows
from mechanisms.sensitive.engines.spark_session import check_java
from mechanisms.sensitive.exact_answers import exact_marginals
from mechanisms.sensitive.private_table import load_private
from pipeline.settings.config import MethodConfig
from tests.audit import replay
from tests.audit.cases import Case, config_of
from tests.audit.hooks import Broken, swapped
from tests.audit.tape import Tape, compared
from tests.audit.worlds import UNITS, make_world, write_table

#: For tables of some rows: few tasks, plans that are not compiled, and no second of waiting.
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
#: Coins of units, of records, and by truncation: whatever meets in a shuffle.
CASE = Case("oneway", "gaussian", "gdp", replace(UNITS, clip="truncate", missing="own", holdout=True), "plain", 8.0, 4)


@cache
def why_not() -> str:
    """Why there is no Spark here; empty where there is."""
    try:
        need_extra("pyspark", "engine")
        check_java()
    except UserError as error:
        return error.what
    return ""


@dataclass(frozen=True)
class LostWriter(KeepRows):
    """Slices are written, and the task is lost before it can tell; when it is run again it writes twice over."""

    def __call__(self, parts: Iterable[Any]) -> Iterator[Any]:
        given = list(parts)
        list(super().__call__(given))
        _lose(Path(self.folder), "writer")
        list(super().__call__(given))
        yield from super().__call__(given)


@dataclass(frozen=True)
class LostCounter(CountCodes):
    """Rows are counted, and the task is lost before its counts arrive; `CountCodes` is a point of the audit."""

    def of_files(self, files: Iterable[str]) -> Iterator[Any]:
        given = list(files)
        counted = list(super().of_files(given))
        _lose(Path(given[0]).parent, "counter")
        yield from counted


@dataclass(frozen=True)
class RewritesBetween(KeepRows):
    """The rows of a part move to the other part after they are read, and before the other is."""

    def __call__(self, parts: Iterable[Any]) -> Iterator[Any]:
        mark = Path(self.folder).parent / "moved"
        for part in parts:
            first, second = (Path(part[0]).with_name(name) for name in ("a.csv", "b.csv"))
            while Path(part[0]) == second and not mark.exists():
                time.sleep(0.01)
            yield from super().__call__([part])
            if Path(part[0]) == first:
                shutil.copy(first, second)
                mark.touch()


def check_rewritten(engine: Any, folder: Path) -> None:
    """No record counts twice because somebody moves rows among the parts while tasks read them."""
    parts = folder / "parts"
    parts.mkdir(parents=True)
    for name, digit in (("a.csv", 1), ("b.csv", 2)):
        (parts / name).write_text(f"n\n{digit}\n", encoding="utf-8")
    schema = parse_schema({"name": "t", "columns": {"n": {"kind": "integer", "min": 0, "max": 9}}}, where="t.yaml")
    table = open_table(parts, workdir=folder / "scan", memory_limit_bytes=1 << 30, threads=1)
    with swapped("kept by tasks", lambda _: RewritesBetween):
        try:
            private = load_private(table, schema, PrivacyUnit(), workdir=folder / "w", key=bytes(16), engine=engine)
        except UserError as error:
            if "the table changed while it was read" in error.what:
                return
            raise
    most = max(int(c.max()) >> WEIGHT_BITS for c in exact_marginals(private.coded, [("n",)], batch_cells=100))
    raise Broken(f"a table that changed while it was read was counted, and a record {most} times")


def _lose(folder: Path, what: str) -> None:
    """The first time in a folder the worker dies, as one that is out of memory does."""
    mark = folder.parent / f".{folder.name}.{what}"
    if not mark.exists():
        mark.touch()
        os._exit(9)


@contextmanager
def lossy() -> Iterator[Any]:
    """Tasks are lost once in each folder, and their work is done again."""
    with (
        swapped("kept by tasks", lambda _: LostWriter) as one,
        swapped("counted by tasks", lambda _: LostCounter) as two,
    ):
        yield one, two


def on_spark(*given: Any) -> Any:
    return replace(config_of(*given), engine=MethodConfig(kind="spark"))


def check_spark(folder: Path, *cases: Case) -> int:
    """Lossy tasks change nothing that leaves, and neighbours are as far apart as is charged; how many runs on Spark."""
    if why_not():
        return 0
    work, runs, home = folder / "spark-work", 0, folder / "spark"
    work.mkdir(mode=0o700, exist_ok=True)

    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}))
        engine = stack.enter_context(SparkSettings("local[2,4]", settings=SMALL).opened(work))
        check_rewritten(engine, Path(stack.enter_context(TemporaryDirectory(dir=folder))))
        for case in cases or (CASE,):
            world = make_world(case.settings, case.seed)
            table = write_table(home / "d" / "t.csv", world.table)
            here, left = replay.outcome(case, folder, table, None)
            there: list[Tape] = []
            with mock.patch.object(replay, "config_of", on_spark), lossy() as lost:
                for rows in (world.table, world.neighbours[0]):
                    tape, right = replay.outcome(case, folder, write_table(home / "s" / "t.csv", rows), here)
                    there.append(tape)
                    runs += 1
                    if _plain(left) != _plain(right):
                        raise Broken(f"{case.name}: Spark releases {replay.difference(_plain(left), _plain(right))}")
            if not all(switch.calls for switch in lost):
                raise Broken(f"{case.name}: no task of Spark's was lost")
            if _facts(here) != _facts(there[0]):
                raise Broken(f"{case.name}: other answers where tasks of Spark ran again")
            try:
                compared(*there)
            except Broken as error:
                raise Broken(f"{case.name} on Spark: {error}") from error
    return runs


def _plain(released: Any) -> Any:
    """Without the papers, which name the engine where it was Spark."""
    if isinstance(released, str):
        return released
    return {k: v for k, v in released.items() if k.startswith(("synthetic", "measurements", "marginals", "schema"))}


def _facts(tape: Tape) -> Any:
    return tape.steps, {name: draw.exact for name, draw in tape.draws.items()}
