"""The quick part of the audit; `make audit` runs the whole."""

from pathlib import Path

import pytest

from tests.audit.cases import CHOICES, check_registry, registered, write_public
from tests.audit.hooks import Broken
from tests.audit.replay import replay
from tests.audit.totals import recomputed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("audit")
    write_public(found)
    return found


def test_neighbours_with_the_same_answers_give_the_same_release(folder):
    tally = replay(folder, most=len(CHOICES))
    assert tally.pairs == len(CHOICES) and tally.answers > 100 and 0.9 < tally.largest <= 1
    check_registry(tally.ran, {k: v for k, v in registered().items() if k in ("selection", "method", "event")})


def test_a_selection_that_no_case_runs_is_told(folder):
    with pytest.raises(Broken, match="ran the selection tarot"):
        check_registry({"selection": {"fixed"}}, {"selection": {"fixed", "tarot"}})


def test_totals_are_what_others_compute(folder):
    found = recomputed(folder, len(CHOICES), seed=3)
    assert found.plans == len(CHOICES)
