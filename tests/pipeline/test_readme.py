"""Every command of the README runs as it stands there, in the order in which it stands, on small tables."""

import re
import shlex
from pathlib import Path

import pandas as pd

from pipeline.demo import write_demo
from pipeline.statement.verify import verify
from tests.pipeline.conftest import SCHEMA, command, people

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def commands() -> list[list[str]]:
    """The lines of the README's bash blocks that start a command of the pipeline."""
    blocks = re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line)[3:] for line in lines if line.startswith("python -m pipeline")]


def test_every_command_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people(300).drop(columns="note").to_csv("my.csv", index=False)
    write_demo(Path("real.csv"), rows=500, seed=1)
    lines = commands()
    names = ["schema", "check", "rehearse", "run", "plan", "run", "synth", "query", "verify", "score", "score"]
    assert [c[0] for c in lines] == [*names, "run", "run"]
    for arguments in lines:
        small = ["data.rows=500"] if arguments[0] == "run" and "data=table" not in arguments else []
        assert command(*arguments, *small) == 0, arguments
    assert len(pd.read_csv("outputs/again/release/synthetic.csv")) == 1000
    assert len(list(Path("multirun/demo").glob("*/*/release/privacy.json"))) == 4
    assert Path("scores.json").exists()
    assert Path("outputs/mine/internal/report.html").exists()
    shown = Path("report.html").read_text(encoding="utf-8")
    assert "pie chart score" in shown or "pie_chart" in shown  # so few rows may leave a synthetic table without any
    assert len(pd.read_csv("hour.csv")) == 24
    assert "fix: " not in capsys.readouterr().err


def test_the_python_example_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(300).to_csv("my.csv", index=False)
    Path("my.yaml").write_text(SCHEMA, encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert code is not None
    names: dict[str, object] = {}
    exec(code[1], names)
    assert len(names["made"]) == 1000 and names["release"].private  # type: ignore[arg-type, attr-defined]
    assert verify(Path("outputs/python")).sound


def test_settings_that_the_readme_names_exist():
    from pipeline.settings.compose import compose_config
    from pipeline.settings.compose import setting_names as keys

    known = {*keys(compose_config("config", [])), "privacy.max_records", "data.path", "data.schema"}
    for name in re.findall(r"`((?:privacy|selection|synthesis|data)\.[a-z_]+)`", README):
        assert name in known, name
