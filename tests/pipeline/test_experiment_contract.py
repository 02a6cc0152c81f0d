"""What every experiment owes: a file that says what it is, and a booking for whatever it releases."""

from pathlib import Path

import pytest
import yaml

from pipeline.budget.admission import PlannedRelease
from pipeline.experiment_run import planned_releases
from pipeline.settings.config import load_config
from pipeline.settings.experiment_list import EXPERIMENTS, FILES, described
from tests.pipeline.conftest import command

LEDGER = ["budget.ledger=shared.json", "budget.limit={epsilon: 1000, delta: 1e-3}"]


def files_of(kind: str) -> list[str]:
    every = {name: yaml.safe_load(path.read_text(encoding="utf-8")) for name, path in FILES.items()}
    return [name for name, given in every.items() if (given.get("experiment") or given).get("kind") == kind]


@pytest.mark.parametrize("kind", EXPERIMENTS)
class TestEveryExperiment:
    def test_it_has_a_file_that_says_what_it_is(self, kind: str) -> None:
        assert files_of(kind)
        lines = dict(line.strip().split(": ", 1) for line in described().splitlines())
        assert all(len(lines[name]) > 20 for name in files_of(kind))

    def test_it_has_no_setting_that_nobody_declared(self, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert command("run", f"experiment={files_of(kind)[0]}", "experiment.no_such_word=1", "hydra.run.dir=out") == 1
        assert "no such setting" in capsys.readouterr().err and not Path("out").exists()

    @pytest.mark.some(2)
    def test_it_books_in_the_ledger_that_is_named_and_in_none_otherwise(self, kind, folder):
        given = [f"experiment={files_of(kind)[0]}", "smoke=true"]
        assert planned_releases(load_config(given), folder / "out") == ()
        booked = planned_releases(load_config([*given, *LEDGER]), folder / "out")
        assert all(isinstance(each, PlannedRelease) for each in booked)
        assert not (folder / "out").exists(), "a booking is said before anything is there"
