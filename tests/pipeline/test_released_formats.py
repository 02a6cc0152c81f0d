"""Commands take a file format that is one entry: run, verify, synth, score and query."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mechanisms.public.tables.formats import CSV, FORMATS
from tests.pipeline.conftest import PAIRS, TOWN, command, write_town
from tests.pipeline.formats import departures

PAGE = (Path(__file__).parents[2] / "docs" / "adding" / "format.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"<!-- file: .*?/feather.py -->\n```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def feather(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The example of the page, as a module beside the project, where it is not added yet."""
    if "feather" in FORMATS:
        yield "feather"
        return
    place = tmp_path_factory.mktemp("module")
    (place / "feather.py").write_text(EXAMPLE, encoding="utf-8")
    monkeypatch.syspath_prepend(place)
    FORMATS["feather"] = importlib.import_module("feather").FEATHER
    yield "feather"
    del FORMATS["feather"], sys.modules["feather"]


@pytest.mark.parametrize("name", ["csv.gz", "feather"])
def test_run_verify_synth_score_and_query_take_a_format_that_is_one_entry(name, feather, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(write_town(tmp_path))
    seeds = ["privacy.noise_seed=3", "synthesis.seed=3"]
    for form in (name, "csv"):
        settings = [f"release.format={form}", f"hydra.run.dir={form}", *seeds]
        assert command("run", *TOWN, *PAIRS, *settings) == 0
    release, table = Path(name) / "release", FORMATS[name].released
    assert (release / table).is_file() and not (release / CSV.released).exists()
    assert departures(release) == []
    (file,) = json.loads((release / "croissant.json").read_text())["distribution"]
    assert (file["name"], file["encodingFormat"]) == (table, FORMATS[name].media)
    scores = [json.loads((Path(form) / "internal" / "scores.json").read_text())["metrics"] for form in (name, "csv")]
    assert scores[0] == scores[1]
    capsys.readouterr()
    command("verify", f"from={name}/release")  # but for its noise seed it is sound
    assert re.findall(r"NO +(\w+)", said := capsys.readouterr().out) == ["private"] and "ok  tables" in said
    assert command("synth", "from=csv/release", f"release.format={name}", "output=again", "synthesis.seed=4") == 0
    assert command("synth", f"from={name}/release", "output=plain", "synthesis.seed=4") == 0
    assert command("score", "real=town.csv", f"synthetic=again/release/{table}", "output=a.json") == 0
    assert command("score", "real=town.csv", "synthetic=plain/release/synthetic.csv", "output=b.json") == 0
    a, b = (json.loads(Path(f).read_text())["metrics"] for f in ("a.json", "b.json"))
    assert a == b
    assert command("query", f"from={name}/release", "bounds=true", "output=bounds.csv") == 0
    assert len(Path("bounds.csv").read_text().splitlines()) == 7


def test_a_resumed_run_reads_the_rows_of_its_format_again(feather, tmp_path, monkeypatch):
    monkeypatch.chdir(write_town(tmp_path))
    run = ("run", *TOWN, *PAIRS, "hydra.run.dir=out", "release.format=feather")
    assert command(*run) == 0
    assert command(*run, "resume=true") == 0
