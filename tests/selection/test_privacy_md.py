"""PRIVACY.md names the selections that are adaptive; apart from their contract tests, which run without documents."""

import re
from pathlib import Path

import pytest

from tests.selection.test_selections import FORMS, OWN, World

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", OWN)
def test_privacy_md_says_whether_it_is_adaptive_and_spends_a_reserve(kind, tmp_path):
    said = " ".join((ROOT / "PRIVACY.md").read_text(encoding="utf-8").split())
    adaptive = re.search(r"unless the selection is adaptive \((.*?)\)", said)
    spending = re.search(r"((?:`\w+`(?:, | and ))+`\w+`) spend a reserve in parts that depend on answers", said)
    schedule = World(tmp_path, kind, list(FORMS), "gdp", "gaussian").schedule
    assert (f"`{kind}`" in adaptive[1]) is (schedule is not None)
    assert (f"`{kind}`" in spending[1]) is (schedule is not None and schedule.reserve > 0)
