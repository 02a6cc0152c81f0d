"""The audit's runs on neighbouring tables, with Spark as the engine."""

import pytest

from tests.audit import replay
from tests.audit.cases import every_case, write_public
from tests.audit.on_spark import on_spark


@pytest.mark.slow
@pytest.mark.parametrize("words", [["oneway/"], ["pairs/", "replace"], ["mst"]], ids="".join)
def test_on_spark_neighbours_with_the_same_answers_give_the_same_release(spark, tmp_path, monkeypatch, words) -> None:
    write_public(tmp_path)
    monkeypatch.setattr(replay, "config_of", on_spark)
    tally = replay.Tally()
    for case, world, plan in every_case(tmp_path, most=2, words=words):
        tally.add(replay.replayed(case, world, plan, tmp_path, few=True))
    assert tally.pairs > 0 and tally.answers > 0 and 0 < max(tally.largest.values()) <= 1
