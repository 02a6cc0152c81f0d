"""A folder of the user's own settings stands beside ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.cli import main
from pipeline.settings.config import load_config

MINE = "# @package data\nname: mine\npath: null\nschema: demo\nunit: caller_id\nmax_records: 3\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own settings" / "data").mkdir(parents=True)
    (tmp_path / "own settings" / "data" / "mine.yaml").write_text(MINE)
    return tmp_path / "own settings"


@pytest.mark.parametrize("joined", [True, False])
def test_a_choice_of_the_own_folder_is_planned_beside_ours(folder, capsys, joined):
    flag = [f"--config-dir={folder}"] if joined else ["--config-dir", str(folder)]
    assert main(["plan", *flag, "data=mine", "privacy.unit=caller_id", "selection=oneway", "plan.format=json"]) == 0
    assert '"max_records": 3' in capsys.readouterr().out
    assert load_config([f'hydra.searchpath=["file://{folder}"]', "data=mine"]).data.name == "mine"


def test_a_misspelt_choice_or_setting_is_still_named(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--config-dir", str(folder), "data=mines"]) == 1
    assert "did you mean 'mine'" in capsys.readouterr().err
    assert main(["plan", "--config-dir", str(folder), "data=mine", "privacy.epsilno=1"]) == 1
    assert "override 'privacy.epsilno=1': no such setting" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--config-dir", str(tmp_path / "no")]) == 1
    assert main(["plan", "--config-dir"]) == 1
    assert capsys.readouterr().err.count("--config-dir: no folder") == 2
