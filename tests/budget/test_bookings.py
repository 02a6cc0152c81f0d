"""The ledger of several runs as a file: what it refuses, and that neither a crowd nor a crash harms it."""

import json
import math
import os
import resource
import stat
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mechanisms.accounting.bookings import (
    SOME,
    LedgerTerms,
    Refused,
    _digest,
    book_runs,
    load_book,
    note_charge,
    opened,
    set_limit,
)
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.filters import Limit, spend_of_pair
from mechanisms.accounting.ledger import NONE, Ledger, Mark, forget
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.accounting.running_total import running_total
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.units import Neighbouring
from pipeline.budget.ledger_report import as_json, as_text
from tests.budget.book_worker import SCOPE, booking, said_by, wanted
from tests.pipeline.forgeries import _opened, _places

ONE = make_plan(
    Domain((Attribute("a", 2),)),
    [Request(("a",))],
    Budget(1.0, 0.0, "basic", Neighbouring.ADD_REMOVE, max_records=1),
    mechanism="laplace",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.json"


class TestBooking:
    def test_a_book_comes_back_as_it_was_written(self, path):
        book = book_runs(wanted(path), [booking("a", 1.0), booking("b", 0.5)])
        assert load_book(path) == book
        assert book.filter.kind == "gdp"
        assert [b.spend for b in book.bookings] == [spend_of_pair(1.0, 0.0), spend_of_pair(0.5, 0.0)]
        assert all(b.time and b.by for b in book.bookings)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_a_lock_is_for_its_owner_alone_since_its_number_of_entries_tells_of_tries(self, path):
        book_runs(wanted(path), [booking("a", 1.0)])
        assert stat.S_IMODE((path.parent / ".people.json.lock").stat().st_mode) == 0o600

    def test_a_new_lock_is_for_whom_a_ledger_that_is_there_is_for(self, path):
        """A group that shares a ledger was refused where a lock that one of them deleted was made anew."""
        book_runs(wanted(path), [booking("a", 1.0)])
        path.chmod(0o660)
        (path.parent / ".people.json.lock").unlink()
        umask = os.umask(0o002)
        try:
            book_runs(wanted(path), [booking("b", 1.0)])
        finally:
            os.umask(umask)
        assert stat.S_IMODE((path.parent / ".people.json.lock").stat().st_mode) == 0o660

    @pytest.mark.parametrize(("form", "said", "taken"), [("1", None, SOME), ("2", None, NONE), ("2", True, SOME)])
    def test_a_book_of_an_older_format_keeps_its_total_and_nobody_draws_on_what_it_says_was_charged(
        self, path, form, said, taken
    ):
        spent = book_runs(wanted(path), [booking("one", 1.0)]).bookings[0].spend
        content = json.loads(path.read_text()) | {"format": f"budget-ledger/{form}"}
        del content["digest"]
        if said is not None:
            content["bookings"][0]["charged"] = said
        path.write_text(json.dumps(content | {"digest": _digest(content)}))
        (path.parent / f".{path.name}.lock").unlink()
        assert [(b.charged, b.spend) for b in load_book(path).bookings] == [(taken, spent)]

    def test_an_id_is_booked_once(self, path):
        book_runs(wanted(path), [booking("a", 1.0)])
        text = path.read_bytes()
        assert len(book_runs(wanted(path), [booking("a", 1.0)]).bookings) == 1
        assert path.read_bytes() == text
        both = book_runs(wanted(path), [booking("a", 1.0), booking("b", 1.0)])
        assert [b.id for b in both.bookings] == ["a", "b"]

    def test_all_of_it_is_booked_or_nothing(self, path):
        book_runs(wanted(path), [booking("a", 1.0)])
        text = path.read_bytes()
        with pytest.raises(Refused) as refused:
            book_runs(wanted(path), [booking("b", 1.0), booking("c", 1.5)])
        assert path.read_bytes() == text
        assert [b.id for b in refused.value.book.bookings] == ["a"]
        assert len(book_runs(wanted(path), [booking("b", 1.0)]).bookings) == 2

    def test_a_table_that_changed_still_adds_up_for_nothing_in_the_file_depends_on_rows(self, path):
        book_runs(wanted(path), [booking("a", 2.0)])
        content = json.loads(path.read_text())
        assert set(content) == {
            *("format", "about", "table", "unit", "neighbouring", "accountant", "slack", "limits", "bookings", "digest")
        }
        (entry,) = content["bookings"]
        about = {"id", "run", "private", "time", "by", "epsilon", "delta", "mu", "rho", "slack"}
        assert set(entry) - {"charged"} == about, "who and when, and nothing of the table"
        with pytest.raises(Refused):
            book_runs(wanted(path), [booking("after the table changed", 2.0)])

    def test_the_file_fixes_its_accountant(self, path):
        book_runs(replace(wanted(path), accountant="zcdp"), [booking("a", 0.1)])
        assert book_runs(wanted(path), [booking("b", 0.1)]).filter.kind == "zcdp"

    def test_a_path_through_an_absent_folder_is_the_same_ledger(self, path, tmp_path):
        """It was read as none, and written over: all that was booked was forgotten."""
        book_runs(wanted(path), [booking("a", 2.0)])
        through = tmp_path / "absent" / ".." / path.name
        assert load_book(through) == load_book(path)
        with pytest.raises(Refused):
            book_runs(wanted(through), [booking("b", 2.0)])
        assert [b.id for b in book_runs(wanted(through), [booking("c", 0.1)]).bookings] == ["a", "c"]

    def test_a_symbolic_link_is_followed_and_a_mode_kept(self, path, tmp_path):
        link = tmp_path / "link.json"
        link.symlink_to(path)
        book_runs(wanted(path), [booking("a", 0.1)])
        path.chmod(0o640)
        with pytest.raises(Refused):
            book_runs(wanted(link), [booking("b", 3.0)])
        book_runs(wanted(link), [booking("b", 0.1)])
        assert link.is_symlink()
        assert len(load_book(path).bookings) == 2
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def test_the_running_total_is_that_of_its_own_booking(self, path):
        book_runs(wanted(path), [booking("a", 1.0)])
        book = book_runs(wanted(path), [replace(booking("b", 0.5), private=False), booking("c", 0.25)])
        first, second, last = (running_total(book, name) for name in ("a", "b", None))
        assert [t.runs for t in (first, second, last)] == [1, 2, 3]
        assert [t.totals.epsilon for t in (first, second, last)] == [1.0, 1.5, 1.75]
        assert [t.not_private for t in (first, second, last)] == [0, 1, 1]
        assert "1 of them not private" in last.sentence
        assert last.to_json()["limit"] == {"epsilon": 3.0, "delta": 1e-6}

    def test_a_limit_that_was_lowered_since_is_no_bound_of_what_was_booked_before(self, path):
        """A run that is resumed after a vote for less says what its total really is kept to."""
        book_runs(wanted(path), [booking("a", 2.0)])
        book = set_limit(path, Limit(1.0, 1e-7), "too much")
        total = running_total(book, "a")
        assert total.totals.epsilon == 2.0
        assert total.limit == Limit(3.0, 1e-6)
        assert "all runs stay within ε = 3, δ = 1e-06 unless that limit is raised" in total.sentence
        assert running_total(book).limit == Limit(1.0, 1e-7), "in force"
        now = running_total(book).sentence
        assert "all runs stay within" not in now and "beyond the limit of today, ε = 1, δ = 1e-07" in now


class TestLimits:
    def test_a_new_ledger_needs_a_limit(self, path):
        with pytest.raises(UserError, match="no limit yet"):
            book_runs(LedgerTerms(path, SCOPE), [booking("a", 0.1)])
        book_runs(wanted(path), [booking("a", 0.1)])
        assert len(book_runs(LedgerTerms(path, SCOPE), [booking("b", 0.1)]).bookings) == 2

    def test_a_run_that_is_let_in_lowers_the_limit_for_good(self, path):
        book_runs(wanted(path), [booking("a", 1.0)])
        text = path.read_bytes()
        with pytest.raises(Refused):
            book_runs(LedgerTerms(path, SCOPE, limit=Limit(1.2, 1e-6)), [booking("b", 0.5)])
        assert path.read_bytes() == text
        book_runs(LedgerTerms(path, SCOPE, limit=Limit(2.0, 1e-6)), [booking("b", 0.5)])
        with pytest.raises(Refused):
            book_runs(LedgerTerms(path, SCOPE), [booking("c", 1.5)])
        known = load_book(path)
        assert [c.limit.epsilon for c in known.limits] == [3.0, 2.0]
        assert known.limits[-1].reason == "lowered by a run"

    @pytest.mark.parametrize("limit", [Limit(3.1, 1e-6), Limit(1.0, 2e-6)])
    def test_a_run_never_raises_the_limit(self, path, limit):
        book_runs(wanted(path), [booking("a", 1.0)])
        with pytest.raises(UserError, match="python -m pipeline budget"):
            book_runs(LedgerTerms(path, SCOPE, limit=limit), [booking("b", 0.5)])

    def test_raising_is_a_command_that_leaves_a_record(self, path):
        book_runs(wanted(path), [booking("a", 3.0)])
        with pytest.raises(Refused):
            book_runs(wanted(path), [booking("b", 1.5)])
        book = set_limit(path, Limit(5.0, 1e-6), "the board agreed on 1 May")
        assert [c.reason for c in book.limits] == ["the ledger was made", "the board agreed on 1 May"]
        assert len(book_runs(LedgerTerms(path, SCOPE), [booking("b", 1.5)]).bookings) == 2

    def test_a_limit_is_set_with_a_reason_and_only_where_there_is_a_file(self, path):
        with pytest.raises(UserError, match="no such ledger"):
            set_limit(path, Limit(5.0, 1e-6), "why not")
        book_runs(wanted(path), [booking("a", 1.0)])
        with pytest.raises(UserError, match="reason"):
            set_limit(path, Limit(5.0, 1e-6), "  ")
        with pytest.raises(UserError, match="already"):
            set_limit(path, Limit(3.0, 1e-6), "again")


class TestDamage:
    @pytest.mark.parametrize("how", ["empty", "cut", "changed", "csv", "bytes", "number", "other"])
    def test_a_damaged_file_is_refused_and_left_alone(self, path, how):
        book_runs(wanted(path), [booking("a", 2.5)])
        text = path.read_text()
        damage = {
            "empty": b"",
            "cut": text[: len(text) // 2].encode(),
            "changed": text.replace("2.5", "0.5").encode(),
            "csv": b"a,b\n1,2\n",
            "bytes": b"\xff\xfe\x00",
            "number": b"3",
            "other": b'{"format": "privacy-statement/1", "digest": ""}',
        }
        path.write_bytes(damage[how])
        for do in (lambda: book_runs(wanted(path), [booking("b", 0.1)]), lambda: load_book(path)):
            with pytest.raises(UserError, match=str(path)):
                do()
        assert path.read_bytes() == damage[how]

    @pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "9" * 10_000])
    def test_a_file_that_no_reader_follows_is_no_ledger(self, path, text):
        path.write_text(text)
        with pytest.raises(UserError, match="not a ledger"):
            load_book(path)

    def test_an_entry_of_another_type_than_a_run_writes_is_damage_whatever_the_digest(self, path):
        """Such ledgers were read, and ended in tracebacks where a total was made."""
        book_runs(wanted(path), [booking("a", 1.0), booking("b", 0.5)])
        note_charge(path, "a", NONE, Mark(1, "ab"))
        content = {k: v for k, v in json.loads(path.read_text()).items() if k != "digest"}
        forget(path)
        values = (None, True, "x", -1, math.nan, 10**400, 1e308, [], [1], {})
        for place in _places(content):
            for value in values:
                new, holder = _opened(content, place[:-1])
                holder[place[-1]] = value
                path.write_text(json.dumps(new | {"digest": _digest(new)}))
                try:
                    book = load_book(path)
                except UserError as error:
                    assert "damaged" in error.what, (place, value)
                    continue
                assert as_text(book) and json.dumps(as_json(book), allow_nan=False), (place, value)
                book.admits([booking("c", 0.1).spend])

    def test_a_ledger_of_a_later_version_is_not_only_called_damaged(self, path):
        path.write_text('{"format": "budget-ledger/9", "digest": ""}')
        with pytest.raises(UserError, match="of a later version"):
            load_book(path)

    def test_a_device_or_a_pipe_is_no_ledger_and_is_not_read_without_end(self):
        with pytest.raises(UserError, match="no plain file"):
            load_book(Path(os.devnull))

    def test_a_second_name_for_the_file_is_refused_under_both(self, path):
        book_runs(wanted(path), [booking("a", 2.0)])
        other = path.with_name("twin.json")
        other.hardlink_to(path)
        for name in (path, other):
            with pytest.raises(UserError, match="2 names"):
                book_runs(wanted(name), [booking("b", 0.5)])
        other.unlink()
        book_runs(wanted(path), [booking("b", 0.5)])

    def test_a_ledger_that_is_read_only_is_closed(self, path):
        book_runs(wanted(path), [booking("a", 0.1)])
        path.chmod(0o444)
        with pytest.raises(UserError, match="read-only"):
            book_runs(wanted(path), [booking("b", 0.1)])
        assert [b.id for b in load_book(path).bookings] == ["a"]

    @pytest.mark.skipif(os.getuid() == 0, reason="root writes everywhere")
    def test_a_folder_that_cannot_be_written_is_refused(self, path):
        path.parent.chmod(0o500)
        try:
            with pytest.raises(UserError, match="cannot write"):
                book_runs(wanted(path), [booking("a", 0.1)])
        finally:
            path.parent.chmod(0o700)


@contextmanager
def full_disk():
    """No file grows beyond 100 bytes: not that of pytest's own report either, so there is room again before it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestDisk:
    @pytest.mark.parametrize(
        "do", [lambda p: book_runs(wanted(p), [booking("b", 1.0)]), lambda p: note_charge(p, "a", Mark(), Mark(1, "x"))]
    )
    def test_on_a_full_disk_the_ledger_stays_as_it_was_and_nothing_is_let_in(self, path, do):
        book_runs(wanted(path), [booking("a", 1.0)])
        before = path.read_bytes()
        with full_disk(), pytest.raises(UserError, match=r"cannot write people\.json: File too large"):
            do(path)
        assert path.read_bytes() == before and sorted(p.name for p in path.parent.iterdir())[1:] == ["people.json"]
        assert [b.charged for b in opened(wanted(path)).bookings] == [Mark()]

    def test_a_first_booking_on_a_full_disk_leaves_no_ledger(self, path):
        with full_disk(), pytest.raises(UserError, match="cannot write"):
            book_runs(wanted(path), [booking("a", 1.0)])
        assert not path.exists()

    def test_what_cannot_be_noted_is_spent_and_not_drawn(self, path, tmp_path):
        book_runs(wanted(path), [booking("a", 1.0)])
        ledger = Ledger.open(
            tmp_path / "own.jsonl", ONE, note=lambda line: note_charge(path, "a", Mark(), Mark().after(line))
        )
        path.unlink()
        with pytest.raises(UserError, match="the booking of this run is gone"):
            ledger.charge(ONE.events[0])
        assert list(Ledger.open(tmp_path / "own.jsonl", ONE).events) == [ONE.events[0].id]

    def test_a_ledger_that_is_ahead_of_what_was_noted_beside_it_is_the_newest(self, path):
        book_runs(wanted(path), [booking("a", 1.0)])
        lock = path.with_name(".people.json.lock")
        before = lock.read_text()
        note_charge(path, "a", Mark(), Mark(1, "x"))
        lock.write_text(before)  # as a kill leaves it right after the ledger
        assert [b.id for b in book_runs(wanted(path), [booking("b", 1.0)]).bookings] == ["a", "b"]
        assert lock.read_text().startswith("000000000004 ")


class TestProcesses:
    def test_of_twelve_that_book_at_once_exactly_those_that_fit_are_in_the_file(self, path):
        codes = said_by("book_worker", "many", str(path), "12")
        assert codes.count(0) == 6  # of 0.5 each, in 3
        assert codes.count(3) == 6
        assert {b.id for b in load_book(path).bookings} == {f"run-{i}" for i, c in enumerate(codes) if c == 0}

    def test_a_kill_at_any_step_leaves_all_or_nothing_and_who_goes_on_books_once(self, path):
        outcomes = said_by("book_worker", "killed", str(path))
        assert len(outcomes) >= 8
        assert [o["killed"] for o in outcomes] == [True] * (len(outcomes) - 1) + [False]
        both = ["first", "second"]
        assert all(o["before"] in ([], both) for o in outcomes)
        assert {len(o["before"]) for o in outcomes[:-1]} == {0, 2}  # kills before the booking, and after it
        assert all(o["after"] == both and o["again"] == 0 for o in outcomes)
