"""docs/adding: a page per kind of addition, whose example runs, in the project and as a plugin.

<!-- file: PATH -->     the next block is the content of that file, in a copy of the project
<!-- after: PATH -->    the next block goes to the end of that file, in that copy
<!-- into: PATH -->     the next block adds its lines with + behind the lines before them, in that copy
<!-- module: NAME -->   the next block is a module of a plugin
<!-- plugin: NAME -->   the next block makes the page's file one
<!-- contract -->       the next block runs: in that copy, or in a folder with the modules where it names plugins
"""

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.plugins.registries import REGISTRIES
from tests.pipeline.conftest import command
from tests.plugins.conftest import PAGES, ROOT, blocks, write_modules

OVERVIEW = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
#: Page → the registries that it is about, and what its example is called.
KINDS = {
    "metric": (("METRICS",), "largest_cell"),
    "synthesizer": (("SYNTHESIZERS",), "best_pair"),
    "selection": (("SELECTIONS",), "top_pairs"),
    "noise": (("NOISE_EVENTS", "SAMPLERS"), "logistic"),
    "accountant": (("ACCOUNTANTS",), "tight_zcdp"),
}
ROW = re.compile(r"^\| .*? \| \[.*?\]\(adding/(\w+)\.md\) \| (.*?) \| `(.*?)` \|$", re.MULTILINE)


def commands(page: str) -> list[list[str]]:
    """The commands of the blocks that are marked as contracts."""
    lines = [line for marks, text in blocks(page) if "contract" in marks for line in text.splitlines()]
    return [shlex.split(line) for line in lines]


def test_every_registry_that_plugins_may_add_to_has_its_page():
    named = {name for names, _ in KINDS.values() for name in names}
    assert named == REGISTRIES.keys() - {"QUERIES"}, "a query matrix comes with its selection: the page on plugins"
    assert "`QUERIES`" in PAGES["plugin"] and all(f"`{name}`" in PAGES["plugin"] for name in named)
    assert {page for page, _, _ in ROW.findall(OVERVIEW)} == KINDS.keys() == PAGES.keys() - {"plugin", "format"}


@pytest.mark.parametrize(("page", "said", "contract"), ROW.findall(OVERVIEW))
def test_what_the_overview_says_of_a_kind_is_so(page, said, contract):
    """The registries are where it says; its contract test is there, runs over a registry, and is the page's."""
    names, _ = KINDS[page]
    assert all(f"`{name}`" in said and f"`{name}`" in PAGES[page] for name in names)
    for path in re.findall(r"`([\w/]+\.py)`", said):
        module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
        assert all(getattr(module, name) is REGISTRIES[name].things for name in names)
    text = (ROOT / contract).read_text(encoding="utf-8")
    assert any(re.search(rf"(parametrize\(.*|for \w+ in ){name}\b", text) for name in names)
    assert f"`{contract}`" in PAGES[page]
    assert all(words[3] == contract for words in commands(page) if words[2] == "pytest")
    assert len(commands(page)) == (2 if "**In the project**, one line" in PAGES[page] else 1)


def contract_tests(folder: Path, plugins: bool) -> None:
    """The contract tests of all pages over their examples, in one process."""
    files, further, names = [], [], []
    for page, (_, name) in KINDS.items():
        for words in commands(page):
            if ("--plugin" in words) == plugins:
                files.append(str(folder / words[3]) if not plugins else str(ROOT / words[3]))
                further += words[4 : words.index("-k")]
                names.append(f"({Path(words[3]).stem} and {name})")
                assert words[words.index("-k") + 1] in name
    config = ["-c", str((ROOT if plugins else folder) / "pyproject.toml"), "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *config, *files, *further, "-k", " or ".join(names)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT if plugins else folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(files) == (5 if plugins else 4)


@pytest.fixture(scope="module")
def copy_with_additions(tmp_path_factory):
    """The project with the files and lines of the pages."""
    copy = tmp_path_factory.mktemp("copy")
    for room in ("mechanisms", "synthesis", "evaluation", "pipeline", "conf", "tests", "docs"):
        shutil.copytree(ROOT / room, copy / room)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for page in PAGES:
        for marks, text in blocks(page):
            if "file" in marks:
                assert not (copy / marks["file"]).exists()
                (copy / marks["file"]).write_text(text, encoding="utf-8")
            elif "after" in marks:
                place = copy / marks["after"]
                place.write_text(place.read_text(encoding="utf-8") + "\n" + text, encoding="utf-8")
            elif "into" in marks:
                place = copy / marks["into"]
                place.write_text(added(place.read_text(encoding="utf-8"), text), encoding="utf-8")
    return copy


def added(content: str, difference: str) -> str:
    """A file with the new lines of a difference, each behind the line that stands before it there."""
    before = ""
    for line in filter(None, difference.splitlines()):
        if line.startswith("+"):
            assert content.count(f"\n{before}\n") == 1, before
            content = content.replace(f"\n{before}\n", f"\n{before}\n{line[1:]}\n")
        before = line[1:]
    return content


@pytest.mark.slow  # a copy of the project, in which everything is compiled anew
def test_what_the_pages_add_to_the_project_passes_the_contract_tests(copy_with_additions):
    contract_tests(copy_with_additions, plugins=False)
    check = [sys.executable, "-m", "ruff", "check", "--quiet", "."]
    lint = subprocess.run(check, cwd=copy_with_additions, capture_output=True, text=True)
    assert lint.returncode == 0, lint.stdout


@pytest.mark.slow
def test_the_same_as_plugins_passes_them_too(tmp_path):
    contract_tests(write_modules(tmp_path), plugins=True)


def test_the_commands_of_the_page_on_plugins_run(forgetful, tmp_path, monkeypatch):
    monkeypatch.chdir(write_modules(tmp_path))
    for number, words in enumerate(commands("plugin")):
        assert words[:3] == ["python", "-m", "pipeline"]
        folder = [f"hydra.run.dir=out{number}"] if words[3] == "run" and "--help" not in words else []
        assert command(*words[3:], *folder) == 0, words
    scored = [json.loads(f.read_text())["metrics"] for f in Path().glob("out*/internal/scores.json")]
    assert [0 <= m["largest_cell"]["score"] <= 1 for m in scored if "largest_cell" in m] == [True]
