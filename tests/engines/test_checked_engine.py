"""An engine of others is not asked about units, and what it says of rows is refused where it cannot be so."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechanisms.public.coded_table import CodedTable, CountedTable, count_cliques
from mechanisms.public.errors import UserError
from mechanisms.public.tables.codec import EncodingReport
from mechanisms.sensitive.contribution import UnitSizes
from mechanisms.sensitive.engines.checked_engine import CheckedEngine
from mechanisms.sensitive.engines.duckdb_engine import DuckdbEngine, EncodedFiles
from mechanisms.sensitive.engines.engine import Clipped
from mechanisms.sensitive.engines.engines import DuckdbSettings, opened_engine
from tests.engines.contract import SETTINGS, loaded, seen
from tests.engines.test_engine_contract import mixed
from tests.engines.test_engines import write


@dataclass(frozen=True)
class Changed(DuckdbEngine):
    """An engine that gives something else than the embedded one, whose answers about units are worthless."""

    change: Callable[[EncodedFiles], Any] = lambda encoded: encoded

    def encode(self, *given: Any, **named: Any) -> Any:
        return self.change(super().encode(*given, **named))

    def values(self, *given: Any, **named: Any) -> Any:
        raise AssertionError("an engine of others was asked how often units count")

    def spread(self, *given: Any, **named: Any) -> Any:
        raise AssertionError("an engine of others was asked for rows that are released")


@dataclass(frozen=True)
class Elsewhere:
    """Rows that are counted elsewhere, by the embedded engine's clipping; `wrong` changes the counts."""

    encoded: EncodedFiles
    wrong: Callable[[Any], Any] = lambda cells: cells

    @property
    def report(self) -> EncodingReport:
        return self.encoded.report

    def unit_sizes(self, aside: Any = None) -> UnitSizes:
        raise AssertionError("an engine of others was asked how many records a unit has")

    def clipped(self, key: bytes, aside: Any) -> Clipped:
        rows = self.encoded.clipped(key, aside).rows
        assert isinstance(rows, CodedTable)
        count = lambda cliques: [self.wrong(c) for c in count_cliques(rows, cliques)]  # noqa: E731
        return Clipped(CountedTable(rows.domain, rows.rows, rows.weighted, count), complete=True, aside=None)


def checked(change: Callable[[EncodedFiles], Any]) -> CheckedEngine:
    return CheckedEngine(Changed(change=change), "mine")


@pytest.mark.some(3)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_rows_elsewhere_that_are_clipped_as_they_should_be_pass(setting: Any, tmp_path: Path) -> None:
    table = write(tmp_path / "t.parquet", mixed(300))
    here = seen(loaded(table, setting, tmp_path / "a"))
    there = seen(loaded(table, setting, tmp_path / "b", engine=checked(Elsewhere)))
    assert {k: v for k, v in there.items() if k not in {"rows", "complete"}} == {
        k: v for k, v in here.items() if k not in {"rows", "complete"}
    }


@pytest.mark.some(3)
@pytest.mark.parametrize("setting", [s for s in SETTINGS if s.unit.column is not None], ids=str)
def test_rows_at_hand_are_clipped_here_whatever_the_engine_says_of_units(setting: Any, tmp_path: Path) -> None:
    """Its file of units gives each row one of its own: nothing would be clipped."""

    def apart(encoded: EncodedFiles) -> EncodedFiles:
        encoded.units.write_bytes(b"no Parquet at all")
        unit = replace(encoded.given.unit, max_records=10**6)
        return replace(encoded, given=replace(encoded.given, unit=unit))

    table = write(tmp_path / "t.parquet", mixed(300))
    here = seen(loaded(table, setting, tmp_path / "a"))
    assert seen(loaded(table, setting, tmp_path / "b", engine=checked(apart))) == here


def with_rows(encoded: EncodedFiles, change: Callable[[CodedTable], CodedTable]) -> EncodedFiles:
    return replace(encoded, coded=change(encoded.coded))


def twice(coded: CodedTable) -> CodedTable:
    return replace(coded, columns=tuple(np.concatenate([c, c]) for c in coded.columns))


WRONG = {
    "a code that its column has not": (
        lambda e: with_rows(e, lambda t: replace(t, columns=(np.full(t.rows, 250, np.uint8), *t.columns[1:]))),
        "codes that its column has no value for",
    ),
    "signed codes": (
        lambda e: with_rows(e, lambda t: replace(t, columns=tuple(c.astype(np.int32) for c in t.columns))),
        "codes that its column has no value for",
    ),
    "codes in two dimensions": (
        lambda e: with_rows(e, lambda t: replace(t, columns=tuple(c.reshape(-1, 1) for c in t.columns))),
        "codes that its column has no value for",
    ),
    "no rows": (lambda e: None, "no encoded rows with a report"),
    "every row twice": (lambda e: with_rows(e, twice), "other columns"),
    "weights of its own": (
        lambda e: with_rows(e, lambda t: replace(t, weights=np.full(t.rows, 1 << 30, np.uint32))),
        "other columns",
    ),
    "a report of other rows": (lambda e: replace(e, report=replace(e.report, rows=7)), "7 rows of a table that has 60"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_codes_that_cannot_be_are_refused(fault: str, tmp_path: Path) -> None:
    change, said = WRONG[fault]
    table = write(tmp_path / "t.parquet", mixed(60))
    with pytest.raises(UserError, match=f"engine: the engine of the module mine gives .*{said}"):
        loaded(table, SETTINGS[2], tmp_path / "w", engine=checked(change))


COUNTS = {
    "twice the counts": lambda cells: cells * 2,
    "one record more": lambda cells: cells + np.eye(1, cells.size, dtype=np.int64)[0],
    "counts below 0": lambda cells: cells - np.eye(2, cells.size, dtype=np.int64)[0] * (cells[0] + 1),
    "no whole numbers": lambda cells: cells.astype(np.float64),
    "fewer cells": lambda cells: cells[:-1],
}


@pytest.mark.some(3)
@pytest.mark.parametrize("setting", [SETTINGS[0], SETTINGS[2], SETTINGS[3], SETTINGS[5]], ids=str)
@pytest.mark.parametrize("fault", COUNTS)
def test_counts_that_no_clipped_table_has_are_refused(fault: str, setting: Any, tmp_path: Path) -> None:
    table = write(tmp_path / "t.parquet", mixed(60))
    engine = checked(lambda e: Elsewhere(e, COUNTS[fault]))
    with pytest.raises(UserError, match="the engine of the module mine counts"):
        seen(loaded(table, setting, tmp_path / "w", engine=engine))


def test_an_engine_of_others_that_clips_rows_at_hand_itself_is_refused(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Own(Elsewhere):
        def clipped(self, key: bytes, aside: Any) -> Clipped:
            return self.encoded.clipped(key, aside)

    table = write(tmp_path / "t.parquet", mixed(60))
    with pytest.raises(UserError, match="must give them as EncodedFiles"):
        loaded(table, SETTINGS[2], tmp_path / "w", engine=checked(Own))


def test_an_engine_whose_settings_name_a_module_of_ours_is_of_others_all_the_same(tmp_path: Path) -> None:
    lying = type("DuckdbSettings", (DuckdbSettings,), {"__module__": DuckdbSettings.__module__})
    for settings, kind in ((lying(), CheckedEngine), (DuckdbSettings(), DuckdbEngine)):
        with opened_engine(settings, tmp_path) as engine:
            assert type(engine) is kind
