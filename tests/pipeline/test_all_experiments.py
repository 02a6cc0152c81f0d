"""`experiment=all`: every experiment in one command, resumable, and the published numbers as data."""

import json
import re
from pathlib import Path

import pytest

from mechanisms.public.errors import UserError
from pipeline.conf_folder import CONF
from pipeline.experiments.experiment_settings import ExperimentSource, settings_of
from pipeline.experiments.gallery.all_experiments import AllSettings, names_of_all
from pipeline.experiments.gallery.published import Published, beside_rows, printed, published_of
from pipeline.experiments.table1 import PAPER
from pipeline.settings.config import load_config
from tests.pipeline.conftest import command


@pytest.mark.slow  # a process for each experiment
def test_one_that_failed_is_named_the_others_are_made_and_what_is_finished_is_not_made_again(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "adult.csv").write_text("age,shoe\n30,42\n")  # no table of adults
    one = ["experiment=all", "smoke=true", "experiment.only=[anita_tradeoff,dpsyn_figure2]", "hydra.run.dir=out"]
    one.append("experiment.files.adult=adult.csv")
    assert command("run", *one) == 1
    said = capsys.readouterr().err
    assert "1 of 2 experiments failed: anita_tradeoff" in said and "Traceback" not in said
    assert "of a processor" not in said, "it depends on rows, as scores do"
    assert "1 of 2  anita_tradeoff      failed" in said and "2 of 2  dpsyn_figure2       done" in said
    inside = Path("out/internal")
    first = json.loads((inside / "outcomes.json").read_text())
    page = (inside / "summary.md").read_text()
    assert "It failed: error: " in page and "crossing in panel A" in page and "Figure 2 (A)" in page
    figure = Path("out/dpsyn_figure2/internal/experiment.json")
    made = figure.stat().st_mtime_ns
    assert command("run", *one) == 1 and "resume=true" in capsys.readouterr().err
    assert command("run", *one, "resume=true") == 1
    said = capsys.readouterr().err
    assert "dpsyn_figure2       finished before" in said
    assert figure.stat().st_mtime_ns == made
    again = json.loads((inside / "outcomes.json").read_text())
    assert again["dpsyn_figure2"] == first["dpsyn_figure2"] and again["anita_tradeoff"]["status"] == "failed"


def test_every_experiment_is_one_of_all_and_every_table_is_of_one():
    settings = settings_of(load_config(["experiment=all"]).experiment, AllSettings)
    files = {p.stem for p in (CONF / "experiment").glob("*.yaml")} - {"all", "none"}
    assert set(names_of_all()) == files
    assert settings.tables.keys() <= files


def test_published_numbers_have_a_place_and_stand_beside_the_row_that_they_are_of():
    numbers = published_of(
        [
            {"metric": "a", "epsilon": 1, "value": 2, "place": "Table 1", "dataset": "x"},
            {"metric": "a", "epsilon": 10, "value": 3, "place": "Table 1"},
        ]
    )
    assert numbers[0] == Published("a", 2, "Table 1", 1, "x")
    assert printed(numbers, "a", epsilon=1, dataset="y") is None
    assert printed(numbers, "a", epsilon=10.0, dataset="y") == numbers[1]
    assert printed(numbers, "b", epsilon=1, dataset="x") is None
    row = {"metric": "a", "dataset": "x", "epsilon": 1, "score": 1.5, "reported": 2, "place": "Table 1"}
    found = beside_rows([row, row | {"reported": None}])
    assert [f["difference"] for f in found] == [-0.5, None] and found[0]["place"] == "Table 1"
    for wrong in ({"metric": "a", "value": 1}, {"metric": "a", "value": "1", "place": "x"}, {"metric": "", "value": 1}):
        with pytest.raises(UserError, match=r"experiment\.published"):
            published_of([wrong])
    with pytest.raises(UserError, match="did you mean 'place'"):
        published_of([{"metric": "a", "value": 1, "plcae": "x"}])


def published_in(name: str) -> tuple[Published, ...]:
    options = load_config([f"experiment={name}"]).experiment.options
    return ExperimentSource(published=options.get("published", [])).printed


def test_the_printed_scores_of_sprint_1_follow_from_table_1():
    """Li et al. 2021a, Table 1: Inv Pie is 1 − S / 3336 over 278 places and 12 months."""
    numbers = published_in("nist2021_sprint1")
    assert len(numbers) == 6
    for number in numbers:
        row = PAPER[f"{number.dataset}-{number.epsilon:g}"]
        assert number.value == round(278 * 12 * (1 - row["inverse_pie"])), number


def test_the_printed_total_of_table_2_is_the_weighted_sum_of_its_losses():
    """N-CRiPT 2021, section 3.1.2: total = BP + Σ ω · loss with ω = (0.3, 0.15, 0.15, 0.15, 0.15)."""
    values = {n.metric: n.value for n in published_in("ncript_table2")}
    assert set(values) == {"JSD", "BP", "JD", "HH", "HC", "VC", "total"}
    weights = {"JSD": 0.3, "JD": 0.15, "HH": 0.15, "HC": 0.15, "VC": 0.15}
    assert sum(w * values[k] for k, w in weights.items()) + values["BP"] == pytest.approx(values["total"], abs=1e-3)


def test_the_gallery_has_the_printed_numbers_and_a_small_picture_of_each_experiment_in_it():
    docs = CONF.parent / "docs"
    page = (docs / "experiments.md").read_text(encoding="utf-8")
    shown = re.findall(r"^## (\w+)$", page, flags=re.MULTILINE)
    assert len(shown) >= 9 and set(shown) <= set(names_of_all())
    for name in shown:
        part = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert f"experiment={name}" in part and f"(figures/experiments/{name}.svg)" in part
        picture = docs / "figures" / "experiments" / f"{name}.svg"
        assert b"<svg" in picture.read_bytes() and picture.stat().st_size < 150_000
        for number in published_in(name):
            assert number.place in part, f"{name}: python docs/make_experiments.py makes the page again"
