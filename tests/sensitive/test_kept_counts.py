"""Exact counts that the jobs of a sweep share: counted once, for the owner alone, and never in the way."""

import stat

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.marginals import count_cliques
from mechanisms.sensitive.kept_counts import KeptCounts, kept_counts

DOMAIN = Domain((Attribute("a", 3), Attribute("b", 2)))
CLIQUES = [("a",), ("a", "b")]


def table(rows, known=None):
    rng = np.random.default_rng(rows)
    columns = (rng.integers(0, 3, rows).astype(np.uint8), rng.integers(0, 2, rows).astype(np.uint8))
    return CodedTable(DOMAIN, columns, known=known)


def test_counts_are_made_once_and_read_after_that(tmp_path):
    folder = tmp_path / "counts"
    truth = [c.tolist() for c in count_cliques(table(50), CLIQUES)]
    assert [c.tolist() for c in count_cliques(table(50, kept_counts(folder)), CLIQUES)] == truth
    (file,) = folder.glob("*.npy")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    def never(table, cliques):
        raise AssertionError("counted again")

    again = kept_counts(folder)(table(50), CLIQUES, never)
    assert [c.tolist() for c in again] == truth
    again[0][0] = -1  # a reader's own copy
    assert [c.tolist() for c in kept_counts(folder)(table(50), CLIQUES, never)] == truth


def test_each_list_of_marginals_has_its_own_counts(tmp_path):
    known = table(50, kept_counts(tmp_path))
    assert count_cliques(known, CLIQUES[:1])[0].tolist() == count_cliques(known, CLIQUES)[0].tolist()
    assert len(list(tmp_path.glob("*.npy"))) == 2


def test_what_has_no_room_is_counted_again(tmp_path):
    known = table(50, KeptCounts(tmp_path, most_bytes=10))
    assert count_cliques(known, CLIQUES)[1].sum() == 50
    assert not list(tmp_path.glob("*.npy"))


def test_a_full_disk_costs_the_counts_that_would_be_kept_and_nothing_else(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    assert count_cliques(table(50, kept_counts(tmp_path)), CLIQUES)[1].sum() == 50
    assert not list(tmp_path.glob("*.np*")) and not list(tmp_path.glob("*.part"))
