"""Measurements as a release holds them: saved, read back, and refused where they were tampered with; residuals."""

import contextlib
import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.adaptive_grid import grid_query
from mechanisms.public.queries.cell_sums import MergedQuery, ResidualQuery, check_stored, query_of, with_residuals
from mechanisms.public.queries.query_matrices import Identity, SparseQuery, sensitivity
from mechanisms.public.release import Measurements, NoisyDistances, NoisyMarginal
from mechanisms.public.release_files import load_answer, load_measurements, save_answer, save_measurements
from mechanisms.public.units import Neighbouring

TOWN = Domain((Attribute("age", 3, 3), Attribute("sex", 2)))
WHOLE = NoisyMarginal(("age",), Identity(3), np.array([1.5, -2.0, 7.25]), "laplace", 2.0, "0000:age")
PREFIX = NoisyMarginal(("age",), SparseQuery.of(np.tri(3)), np.array([0.1, 0.2, 0.3]), "gaussian", 3.0, "0001:age")


def test_measurements_survive_being_saved(tmp_path):
    save_measurements(Measurements(TOWN, (WHOLE, PREFIX), public_total=9), tmp_path)
    again = load_measurements(tmp_path)
    assert again.domain == TOWN
    assert again.public_total == 9
    for left, right in zip((WHOLE, PREFIX), again.answers, strict=True):
        assert np.array_equal(left.values, right.values)
        assert all(getattr(left, n) == getattr(right, n) for n in ("clique", "noise", "scale", "event"))
        assert np.array_equal(left.query.answer(np.ones(3)), right.query.answer(np.ones(3)))


def test_no_pickle_is_ever_loaded(tmp_path):
    save_measurements(Measurements(TOWN, (WHOLE,)), tmp_path)
    np.savez(tmp_path / "answers.npz", **{"0.values": np.array([{"a": 1}], dtype=object), "0.cells": np.array([3])})
    with pytest.raises(UserError, match="not readable as measurements"):
        load_measurements(tmp_path)


def test_one_answer_survives_being_saved(tmp_path):
    save_answer(tmp_path / "a.npz", PREFIX)
    assert np.array_equal(load_answer(tmp_path / "a.npz").values, PREFIX.values)
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


BROKEN = {
    "nothing there": lambda index: index.unlink(),
    "not json": lambda index: index.write_text("{"),
    "another format": lambda index: index.write_text("[]"),
    "does not fit": lambda index: index.write_text(index.read_text().replace('"size": 3', '"size": 4')),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_folder_is_a_clear_error(tmp_path, how):
    save_measurements(Measurements(TOWN, (WHOLE,)), tmp_path)
    BROKEN[how](tmp_path / "index.json")
    with pytest.raises(UserError, match="measurements"):
        load_measurements(tmp_path)


def test_the_standard_deviation_of_laplace_noise_is_root_two_times_its_scale():
    assert WHOLE.stddev == pytest.approx(2.0 * 2**0.5)
    assert PREFIX.stddev == 3.0


MERGED = NoisyMarginal(("age",), MergedQuery((np.array([0, 1, 1]),)), np.array([1.0, 2.0]), "gaussian", 3.0, "2")
CELLS = replace(grid_query(TOWN, ("age", "sex"), (WHOLE,), threshold=1.0, norm="l2"), bits=10)
GRID = NoisyMarginal(("age", "sex"), CELLS, np.zeros(CELLS.rows), "gaussian", 3.0, "3")
HISTOGRAM = NoisyMarginal(("records per id",), Identity(4), np.array([5.0, -1, 0, 2]), "gaussian", 1.0, "units:id")
DISTANCES = NoisyDistances((("age", "sex"),), np.array([True]), np.array([3.5]), 2, "gaussian", 4.0, "0002:scores:")
EVERY = Measurements(TOWN, (WHOLE, PREFIX, MERGED, GRID), distances=DISTANCES, persons=(HISTOGRAM,))


def test_a_histogram_and_distances_survive_being_saved_and_nothing_else_is_taken_for_them(tmp_path):
    save_measurements(EVERY, tmp_path)
    kept = load_measurements(tmp_path)
    histogram, again = kept.histogram, kept.distances
    assert np.array_equal(histogram.values, HISTOGRAM.values) and histogram.event == "units:id"
    assert again is not None and again.values.tolist() == [3.5] and again.whole.tolist() == [True]
    named = ("cliques", "answers", "noise", "scale", "event")
    assert [getattr(again, n) for n in named] == [getattr(DISTANCES, n) for n in named]
    facts = json.loads((tmp_path / "index.json").read_text())
    odd = [("cliques", cliques) for cliques in ([["sex", "age"]], [["age"]], [["age", "agee"]], [])]
    for field, wrong in (*odd, ("answers", 5), ("answers", 1.5), ("scale", 0), ("noise", "none")):
        changed = {**facts, "distances": {**facts["distances"], field: wrong}}
        (tmp_path / "index.json").write_text(json.dumps(changed))
        with pytest.raises(UserError):
            load_measurements(tmp_path)


TAMPER = {
    "taken away": lambda a: None,
    "not finite": lambda a: np.full(a.shape, np.nan),
    "too short": lambda a: a[:-1],
    "too long": lambda a: np.concatenate([a, a]),
    "another shape": lambda a: a.reshape(-1, 1),
    "a single number": lambda a: a[0],
    "texts": lambda a: a.astype(str),
    "out of bounds": lambda a: a + a.dtype.type(1000),
    "below zero": lambda a: a - a.dtype.type(1000),
}
#: Arrays that still are answers to queries of the right size: only a digest can tell, as in a run's seal.
STILL_ANSWERS = {("1.bits", "taken away"), ("3.fine_0_1", "too short")}
STILL_ANSWERS |= {(n, "too long") for n in ("0.cells", "1.shape", "1.bits", "histogram.cells")}
NUMBERS = ("values", "data", "whole")


@pytest.mark.parametrize("how", TAMPER)
def test_measurements_that_were_tampered_with_are_a_clear_error(tmp_path, how):
    save_measurements(EVERY, tmp_path)
    with np.load(tmp_path / "answers.npz") as arrays:
        kept = dict(arrays)
    for name in kept:
        moved = how in ("out of bounds", "below zero") and name.endswith(NUMBERS)
        if moved or (name, how) in STILL_ANSWERS:
            continue
        changed = TAMPER[how](kept[name])
        others = {k: v for k, v in kept.items() if k != name}
        np.savez(tmp_path / "answers.npz", **others, **({} if changed is None else {name: changed}))
        with pytest.raises(UserError, match="not readable as measurements"):
            load_measurements(tmp_path)


@pytest.mark.parametrize("field", ["query", "clique", "noise", "scale", "event"])
def test_receipts_that_were_tampered_with_are_a_clear_error(tmp_path, field):
    save_measurements(EVERY, tmp_path)
    facts = json.loads((tmp_path / "index.json").read_text())
    for wrong in (None, -1, "x", [], {}):
        for answer in [*range(4), None]:
            changed = json.loads(json.dumps(facts))
            (changed["histogram"] if answer is None else changed["answers"][answer])[field] = wrong
            (tmp_path / "index.json").write_text(json.dumps(changed))
            if field == "event" or (answer is None and field == "clique"):
                continue
            with pytest.raises(UserError):
                load_measurements(tmp_path)


def test_a_file_that_was_cut_off_or_changed_is_a_clear_error(tmp_path):
    save_measurements(EVERY, tmp_path)
    path = tmp_path / "answers.npz"
    whole = path.read_bytes()
    for cut in range(0, len(whole), 97):
        path.write_bytes(whole[:cut])
        with pytest.raises(UserError, match="not readable as measurements"):
            load_measurements(tmp_path)
        path.write_bytes(whole[:cut] + bytes([whole[cut] ^ 255]) + whole[cut + 1 :])
        with contextlib.suppress(UserError):
            load_measurements(tmp_path)


SHAPES = [(2,), (5,), (2, 2), (2, 3), (4, 3), (2, 2, 3)]


def matrix_of(shape: tuple[int, ...]) -> np.ndarray:
    """⊗ (I − J/k), by its definition."""
    matrix = np.ones((1, 1))
    for k in shape:
        matrix = np.kron(matrix, np.eye(k) - np.full((k, k), 1 / k))
    return matrix


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_projection_onto_what_no_smaller_marginal_tells(shape):
    query, rng = ResidualQuery(shape), np.random.default_rng(0)
    counts = rng.integers(0, 50, query.columns)
    assert query.answer(counts.astype(float)) == pytest.approx(matrix_of(shape) @ counts * query.unit)
    assert query.answer_exact(counts).tolist() == np.rint(matrix_of(shape) @ counts * query.rows).tolist()
    assert query.answer_exact(counts) * 2.0**-query.bits == pytest.approx(query.answer(counts.astype(float)))
    assert query.residual(query.answer(counts.astype(float))).ravel() == pytest.approx(matrix_of(shape) @ counts)
    assert 0.5 < query.unit <= 1


def test_noise_outside_of_the_residual_is_taken_off():
    query, rng = ResidualQuery((3, 4)), np.random.default_rng(1)
    left = np.stack([query.residual(rng.normal(0, 6.0, 12)) for _ in range(4_000)])
    assert np.abs(left.sum(axis=1)).max() < 1e-9 and np.abs(left.sum(axis=2)).max() < 1e-9
    assert left.std() == pytest.approx(query.noise(6.0), rel=0.03)


def test_it_survives_being_saved_and_a_shape_without_residual_is_refused():
    query = ResidualQuery((3, 4))
    check_stored(query)
    assert query_of("ResidualQuery", query.arrays()) == query
    for shape in ([], [1, 3], [300, 300], [-2, -3]):
        with pytest.raises(ValueError, match="no residual"):
            query_of("ResidualQuery", {"shape": np.array(shape, np.int64)})


def test_answers_that_do_not_fit_are_an_error_and_not_a_wrong_number():
    with pytest.raises(UserError, match="a table of fewer records"):
        SparseQuery.of(np.full((1, 2), 1000.0)).answer_exact(np.array([2**45, 2**45]))
    with pytest.raises(UserError, match="63 bits"):
        ResidualQuery((200, 300)).answer_exact(np.full(60_000, 2**40))


@pytest.mark.parametrize("neighbouring", list(Neighbouring))
def test_residuals_are_asked_where_their_noise_is_less(neighbouring):
    sizes = {"a": 5, "b": 4, "c": 2, "d": 3, "e": 1}
    domain = Domain(tuple(Attribute(n, k) for n, k in sizes.items()))
    queries = {p: Identity(domain.cells(p)) for p in itertools.combinations(sizes, 2)}
    queries["a", "b"] = MergedQuery((np.array([0, 0, 1, 1, 1]), np.array([0, 0, 1, 1])))

    def bound(norm):
        return lambda query: sensitivity(query, norm=norm, neighbouring=neighbouring, max_records=2)

    asked, factor = with_residuals(domain, queries, bound("l2"))
    changed = {p for p in asked if asked[p] is not queries[p]}
    assert changed == {("a", "c"), ("a", "d"), ("b", "d")}  # not what is merged, tiny, or of one code
    assert {p for p in factor if factor[p] < 1} == changed
    if neighbouring is Neighbouring.ADD_REMOVE:
        assert factor["a", "d"] == pytest.approx(math.sqrt(4 / 5 * 2 / 3))
    assert with_residuals(domain, queries, bound("l1")) == (queries, dict.fromkeys(queries, 1.0))
