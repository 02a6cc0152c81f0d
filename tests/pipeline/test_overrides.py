"""Settings with letters, spaces and brackets that Hydra's grammar does not know."""

from __future__ import annotations

import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from pipeline.cli import main
from pipeline.settings.compose import compose_config
from pipeline.settings.config import QueryConfig, typed
from pipeline.settings.overrides import readable, spelled


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("data.path=Bücher.csv", "Bücher.csv"),
        ("data.path=out (1).csv", "out (1).csv"),
        ("marginal=[Rückgabe am,Größe]", ["Rückgabe am", "Größe"]),
        ("selection.marginals=[[Straße,Note],[a (b)]]", [["Straße", "Note"], ["a (b)"]]),
        ("delimiter=;", ";"),
    ],
)
def test_names_of_the_world(override: str, value: object) -> None:
    assert OverridesParser.create().parse_override(spelled(override)).value() == value


def test_what_can_be_read_stays() -> None:
    for override in ("privacy.epsilon=0.5,1", "a=[[x,y]]", "b={c: [1, 2]}", "d='e'"):
        assert readable(override) and spelled(override) == override


def test_where_with_umlauts() -> None:
    config = typed(compose_config("query", ["where={Straße/Bezirk: [Mitte], Alter: [10, 20]}"]), QueryConfig)
    assert config.where == {"Straße/Bezirk": ["Mitte"], "Alter": [10, 20]}


def test_a_release_with_commas_against_a_table_with_semicolons(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"Größe": [1, 2, 3] * 20, "b": [0, 1] * 30})
    frame.to_csv("Bücher.csv", sep=";", index=False)
    frame.to_csv("made.csv", index=False)
    assert main(["schema", "Bücher.csv", "delimiter=;", "output=s.yaml"]) == 0
    given = ["real=Bücher.csv", "synthetic=made.csv", "schema=s.yaml", "delimiter=;", "metrics=[tvd]", "output=o.json"]
    assert main(["score", *given]) == 0
    assert "(0 to 1): 1-way 0.0000, 2-way 0.0000 " in capsys.readouterr().out
