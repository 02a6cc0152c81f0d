"""What crossed the wall survives being saved, and nothing else is taken for it."""

import json

import numpy as np
import pytest

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries import Identity, SparseQuery
from mechanisms.public.release import Measurements, NoisyMarginal, load_answer, load_measurements, save_answer

TOWN = Domain((Attribute("age", 3, 3), Attribute("sex", 2)))
WHOLE = NoisyMarginal(("age",), Identity(3), np.array([1.5, -2.0, 7.25]), "laplace", 2.0, "0000:age")
PREFIX = NoisyMarginal(("age",), SparseQuery.of(np.tri(3)), np.array([0.1, 0.2, 0.3]), "gaussian", 3.0, "0001:age")


def test_measurements_survive_being_saved(tmp_path):
    Measurements(TOWN, (WHOLE, PREFIX), public_total=9).save(tmp_path)
    again = load_measurements(tmp_path)
    assert again.domain == TOWN
    assert again.public_total == 9
    for left, right in zip((WHOLE, PREFIX), again.answers, strict=True):
        assert np.array_equal(left.values, right.values)
        assert (left.clique, left.noise, left.scale, left.event) == (
            right.clique,
            right.noise,
            right.scale,
            right.event,
        )
        assert np.array_equal(left.query.answer(np.ones(3)), right.query.answer(np.ones(3)))


def test_no_pickle_is_ever_loaded(tmp_path):
    Measurements(TOWN, (WHOLE,)).save(tmp_path)
    np.savez(tmp_path / "answers.npz", **{"0.values": np.array([{"a": 1}], dtype=object), "0.cells": np.array([3])})
    with pytest.raises(UserError, match="not readable as measurements"):
        load_measurements(tmp_path)


def test_one_answer_survives_being_saved(tmp_path):
    save_answer(tmp_path / "a.npz", PREFIX)
    assert np.array_equal(load_answer(tmp_path / "a.npz").values, PREFIX.values)
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.parametrize("break_it", ["nothing there", "not json", "another format", "cut off", "does not fit"])
def test_a_broken_folder_is_a_clear_error(tmp_path, break_it):
    Measurements(TOWN, (WHOLE,)).save(tmp_path)
    index = tmp_path / "index.json"
    if break_it == "nothing there":
        index.unlink()
    elif break_it == "not json":
        index.write_text("{")
    elif break_it == "another format":
        index.write_text("[]")
    elif break_it == "cut off":
        (tmp_path / "answers.npz").write_bytes((tmp_path / "answers.npz").read_bytes()[:50])
    else:
        facts = json.loads(index.read_text())
        facts["domain"][0]["size"] = 4
        index.write_text(json.dumps(facts))
    with pytest.raises(UserError, match="measurements"):
        load_measurements(tmp_path)


def test_the_standard_deviation_of_laplace_noise_is_root_two_times_its_scale():
    assert WHOLE.stddev == pytest.approx(2.0 * 2**0.5)
    assert PREFIX.stddev == 3.0
