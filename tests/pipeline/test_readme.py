"""Every command of the README runs as it stands there, in the order in which it stands, on small tables."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from pipeline.demo import write_demo
from pipeline.demo.__main__ import main as write_table
from pipeline.statement.verify import verify
from tests.pipeline.conftest import command

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


#: Settings of the README that the tests make smaller: nothing else of it changes.
SMALL = {"50000": "600", "data.rows=50000": "data.rows=600", "data.rows=20000": "data.rows=600"}


def commands() -> list[list[str]]:
    """The lines of the README's bash blocks that start a program of the package, in their order."""
    blocks = re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL)
    lines = [shlex.split(line) for block in blocks for line in block.splitlines()]
    return [[SMALL.get(word, word) for word in words[2:]] for words in lines if words[:2] == ["python", "-m"]]


@contextlib.contextmanager
def _heard():
    """All that is said while the block lasts."""
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(said):
        yield said


@pytest.fixture(scope="module")
def toured(tmp_path_factory):
    """An empty folder in which every command ran as it stands there: each finds what those before it made."""
    folder = tmp_path_factory.mktemp("tour")
    with pytest.MonkeyPatch.context() as patch, _heard() as said:
        patch.chdir(folder)
        for program, *arguments in commands():
            assert (write_table(arguments) if program == "pipeline.demo" else command(*arguments)) == 0, arguments
    return folder, said.getvalue()


def test_every_command_of_the_readme_runs(toured, monkeypatch):
    folder, said = toured
    monkeypatch.chdir(folder)
    names = ["my.csv", "schema", "check", "rehearse", "run", "plan", "run", "synth", "query", "query", "query"]
    assert [c[1] for c in commands()] == [*names, "verify", "score", "score", "run", "run"]
    assert len(pd.read_csv("outputs/again/release/synthetic.csv")) == 1000
    assert len(list(Path("multirun/demo").glob("*/*/release/privacy.json"))) == 4
    assert Path("scores.json").exists()
    assert Path("outputs/mine/internal/report.html").exists()
    shown = Path("report.html").read_text(encoding="utf-8")
    assert "pie chart score" in shown or "pie_chart" in shown  # so few rows may leave a synthetic table without any
    assert len(pd.read_csv("hour.csv")) == 24
    assert "fix: " not in said and "does NOT hold" not in said


def test_the_table_of_the_tour_is_the_one_that_its_run_protects_and_is_never_written_over(toured, tmp_path, capsys):
    table = pd.read_csv(toured[0] / "my.csv")
    write_demo(tmp_path / "same.parquet", rows=600, seed=0)
    assert (table["caller_id"] == pd.read_parquet(tmp_path / "same.parquet")["caller_id"]).all()
    before = (toured[0] / "my.csv").read_bytes()
    assert write_table([str(toured[0] / "my.csv"), "7"]) == 1 and (toured[0] / "my.csv").read_bytes() == before
    assert write_table([]) == write_table(["x.csv", "many"]) == write_table(["x.txt"]) == 1
    assert "already" in (said := capsys.readouterr().err) and "python -m pipeline.demo FILE" in said


def test_the_python_example_of_the_readme_runs(toured, monkeypatch):
    monkeypatch.chdir(toured[0])
    drafted = Path("my.yaml").read_text(encoding="utf-8")
    confirmed = re.sub("^confirmed_public: .*$", "confirmed_public: true", drafted, flags=re.MULTILINE)
    confirmed = re.sub("^source: .*$", "source: made up for a test", confirmed, flags=re.MULTILINE)
    Path("my.yaml").write_text(confirmed, encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert code is not None
    names: dict[str, object] = {}
    exec(code[1], names)
    assert len(names["made"]) == 1000 and names["release"].private  # type: ignore[arg-type, attr-defined]
    assert verify(Path("outputs/python")).sound
