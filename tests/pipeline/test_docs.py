"""Every command and the Python of the pages of docs/ run as they stand there, in their order, on small tables.

What a line needs, a line before it makes. Comments in a page say:

<!-- small: SETTING=VALUE … --> settings that the tests add to the `run` commands of the next block
<!-- file: PATH -->             the next block is the content of that file

The pages of docs/adding have a test of their own: tests/plugins/test_guide.py.
"""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from evaluation.metrics import METRICS
from pipeline.conf_folder import CONF
from pipeline.demo.__main__ import main as write_table
from pipeline.settings.compose import compose_config
from pipeline.settings.compose import setting_names as keys
from tests.pipeline.conftest import command

ROOT = Path(__file__).parents[2]
PAGES = {p.stem: p.read_text(encoding="utf-8") for p in sorted((ROOT / "docs").glob("*.md"))}
BLOCK = re.compile(r"((?:<!-- .*? -->\n)*)```(bash|yaml|python|diff)\n(.*?)```", re.DOTALL)


def blocks(page: str) -> list[tuple[dict[str, str], str, str]]:
    """The comments, the language and the text of each block."""
    mark = r"<!-- (\w+):? ?(.*?) -->"
    return [(dict(re.findall(mark, said)), language, text) for said, language, text in BLOCK.findall(PAGES[page])]


def run_line(words: list[str], small: list[str]) -> None:
    """One command, in this process where it is the pipeline's."""
    if words[:3] == ["python", "-m", "pipeline"]:
        further = small if words[3] == "run" else []
        kept = [w for w in words[3:] if w.partition("=")[0] not in {s.partition("=")[0] for s in further}]
        assert command(*kept, *further) == 0, words
    elif words[:3] == ["python", "-m", "pipeline.demo"]:
        assert write_table([words[3], "500"]) == 0, words
    elif words[0] == "python" and words[1].startswith("docs/"):
        subprocess.run([sys.executable, ROOT / words[1], *words[2:]], check=True)
    elif words[0] == "openssl":
        subprocess.run(words, check=True, capture_output=True)
    elif words[:2] == ["cp", "-r"]:
        shutil.copytree(words[2], words[3])
    else:
        raise AssertionError(f"the tests do not know how to run {words}")


@pytest.mark.parametrize("page", [p for p in PAGES if any(b[1] in {"bash", "python"} for b in blocks(p))])
def test_every_command_of_a_page_runs(page, folder, capsys):
    names: dict[str, object] = {}
    for marks, language, text in blocks(page):
        if "file" in marks:
            Path(marks["file"]).write_text(text, encoding="utf-8")
        elif language == "bash":
            for words in (shlex.split(line) for line in text.splitlines() if line.strip()):
                run_line(words, marks.get("small", "").split())
        elif language == "python":
            exec(text, names)
    assert "fix: " not in capsys.readouterr().err
    if page == "bring-your-own-table":
        assert '"private": true' in Path("admissions-release/privacy.json").read_text()
        assert len(pd.read_csv("ward.csv")) == 8
    if page == "python":
        assert len(names["made"]) == 1000 and names["same"].shape == names["made"].shape  # type: ignore[arg-type, attr-defined]
        assert sorted(p.name for p in folder.iterdir()) == ["outputs"]
    if page == "sweeps-and-experiments":
        assert same_form(Path("error_by_epsilon.svg"), ROOT / "docs" / "figures" / "error_by_epsilon.svg")


MADE = re.compile(r'(?:hydra\.(?:run|sweep)\.dir=|\boutput=|folder="|\.save\(")((?:outputs|multirun)/\w+)')


def test_no_two_pages_make_one_folder_nor_does_one_page_twice():
    """Whoever follows all pages in one place is never told that a folder holds a run already."""
    pages = {**PAGES, "README": (ROOT / "README.md").read_text(encoding="utf-8")}
    made = [folder for text in pages.values() for folder in MADE.findall(text)]
    assert "outputs/mine" in made and "multirun/figure" in made
    assert sorted(made) == sorted(set(made))


def same_form(made: Path, kept: Path) -> bool:
    """Two drawings with the same size and the same words; the noise is fresh, so that points and ticks differ."""

    def form(path: Path) -> tuple[object, ...]:
        drawing = ElementTree.parse(path).getroot()
        words = [t.text or "" for t in drawing.iter("{http://www.w3.org/2000/svg}text")]
        return drawing.get("width"), drawing.get("height"), [w for w in words if re.search("[a-zA-Zε]", w)]

    return form(made) == form(kept)


def test_every_experiment_stands_on_its_page_with_its_command():
    page = PAGES["sweeps-and-experiments"]
    for path in (CONF / "experiment").glob("*.yaml"):
        given = re.findall("^# .*?(python -m pipeline run .*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert path.stem == "none" or (f"| `{path.stem}` |" in page and any(g in page for g in given)), path


def test_every_choice_and_metric_stands_on_its_page():
    assert all(f"`{name}`" in PAGES["score-and-report"] for name in METRICS)
    for group, page in (("selection", "select-and-measure"), ("synthesis", "synthesize"), ("data", "load-and-clip")):
        for path in (CONF / group).glob("*.yaml"):
            assert f"`{path.stem}`" in PAGES[page] or path.stem == "table", path


SETTING = re.compile(r"`((?:privacy|selection|synthesis|data|evaluation|plan)\.(?!json\b|schema\.)[a-z_]+)\b")


def test_settings_and_links_of_the_pages_exist():
    choices = [f"selection={path.stem}" for path in (CONF / "selection").glob("*.yaml")]
    known = {"privacy.max_records", *keys(compose_config("config", []))}
    for choice in ("data=table", "experiment=mgd_table1", *choices):
        known |= {*keys(compose_config("config", [choice]))}
    for name, text in {**PAGES, "README": (ROOT / "README.md").read_text(encoding="utf-8")}.items():
        for setting in SETTING.findall(text):
            assert setting in known, (name, setting)
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (ROOT / ("" if name == "README" else "docs") / link).exists(), (name, link)
