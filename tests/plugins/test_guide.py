"""docs/adding: a page per kind of addition, whose example runs, in the project and as a plugin.

<!-- file: PATH -->     the next block is the content of that file, in a copy of the project
<!-- after: PATH -->    the next block goes to the end of that file, in that copy
<!-- into: PATH -->     the next block adds its lines with + behind the lines before them, in that copy
<!-- takes: NAMES -->   these definitions of the page's module go there too, behind the block's imports
<!-- module: NAME -->   the next block is a module of a plugin
<!-- plugin: NAME -->   the next block makes the page's file one
<!-- contract -->       the next block runs: in that copy, or in a folder with the modules where it names plugins
"""

import ast
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
from tests.test_architecture import empty_names

OVERVIEW = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
#: Page → the registries that it is about, and what its example is called.
KINDS = {
    "metric": (("METRICS",), "largest_cell"),
    "synthesizer": (("SYNTHESIZERS",), "best_pair"),
    "selection": (("SELECTIONS",), "top_pairs"),
    "noise": (("NOISE_EVENTS", "SAMPLERS"), "logistic"),
    "accountant": (("ACCOUNTANTS",), "tight_zcdp"),
    "engine": (("ENGINES",), "pool"),
    "experiment": (("EXPERIMENTS",), "budget_halves"),
    "format": (("FORMATS",), "feather"),
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
    assert {page for page, _, _ in ROW.findall(OVERVIEW)} == KINDS.keys() == PAGES.keys() - {"plugin"}


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
    assert ["--plugin" in words for words in commands(page)] == [False, True]


def contract_test(page: str, folder: Path, plugin: bool) -> None:
    """The contract test of a page over its example, as the page asks for it."""
    (words,) = (words for words in commands(page) if ("--plugin" in words) == plugin)
    root = ROOT if plugin else folder
    assert words[words.index("-k") + 1] == KINDS[page][1]
    config = ["-c", str(root / "pyproject.toml"), "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *config, str(root / words[3]), *words[4:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", KINDS)
def test_the_file_of_a_page_names_things_as_the_project_does(page, tmp_path):
    (text,) = (text for marks, text in blocks(page) if marks.get("file", "").endswith(".py"))
    (tmp_path / "example.py").write_text(text, encoding="utf-8")
    assert empty_names(tmp_path / "example.py") == []


@pytest.fixture(scope="module")
def copy_with_additions(tmp_path_factory):
    """The project with the files and lines of the pages."""
    copy = tmp_path_factory.mktemp("copy")
    for room in ("mechanisms", "synthesis", "evaluation", "pipeline", "conf", "tests", "docs"):
        shutil.copytree(ROOT / room, copy / room)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for page in PAGES:
        module = next((text for marks, text in blocks(page) if "module" in marks), "")
        for marks, text in blocks(page):
            text = with_definitions(text, module, marks["takes"].split(", ")) if "takes" in marks else text
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


def with_definitions(block: str, module: str, names: list[str]) -> str:
    """A block with definitions of a module behind its docstring and its imports."""
    lines, rest = block.splitlines(), []
    while lines and not re.match(r"from |import |\"\"\"", lines[-1]):
        rest.insert(0, lines.pop())
    taken = ["", ""]
    for node in ast.parse(module).body:
        named = {getattr(node, "name", None), *(t.id for t in getattr(node, "targets", ()) if isinstance(t, ast.Name))}
        if named & set(names):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            taken += [*module.splitlines()[first - 1 : node.end_lineno], "", ""]
    return "\n".join([*lines, *taken, *rest]).strip() + "\n"


def added(content: str, difference: str) -> str:
    """A file with the new lines of a difference, each behind the line that stands before it there."""
    before = ""
    for line in filter(None, difference.splitlines()):
        if line.startswith("+"):
            assert content.count(f"\n{before}\n") == 1, before
            content = content.replace(f"\n{before}\n", f"\n{before}\n{line[1:]}\n")
        before = line[1:]
    return content


#: A page's contract test compiles the samplers anew, or makes whole runs; that of formats takes seconds.
REHEARSED = [page if page == "format" else pytest.param(page, marks=pytest.mark.slow) for page in KINDS]


@pytest.mark.parametrize("page", REHEARSED)
def test_what_a_page_adds_to_the_project_passes_its_contract_test(copy_with_additions, page):
    contract_test(page, copy_with_additions, plugin=False)


def test_what_the_pages_add_to_the_project_is_written_as_the_project_is(copy_with_additions):
    check = [sys.executable, "-m", "ruff", "check", "--quiet", "."]
    lint = subprocess.run(check, cwd=copy_with_additions, capture_output=True, text=True)
    assert lint.returncode == 0, lint.stdout


@pytest.mark.slow
def test_what_the_pages_add_to_the_project_is_typed_and_keeps_to_its_rooms(copy_with_additions):
    environment = {**os.environ, "PYTHONPATH": str(copy_with_additions)}
    lint = [str(Path(sys.executable).parent / "lint-imports")]
    subprocess.run(["git", "init", "-q"], cwd=copy_with_additions, check=True)  # a rule looks at the files that git has
    subprocess.run(["git", "add", "*.py", "*.toml", "*.yaml"], cwd=copy_with_additions, check=True)
    for words in (lint, [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/test_architecture.py"]):
        done = subprocess.run(words, cwd=copy_with_additions, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", KINDS)
def test_the_same_as_a_plugin_passes_it_too(tmp_path, page):
    contract_test(page, write_modules(tmp_path), plugin=True)


@pytest.mark.slow
def test_the_commands_of_the_page_on_plugins_run(forgetful, tmp_path, monkeypatch):
    monkeypatch.chdir(write_modules(tmp_path))
    for number, words in enumerate(commands("plugin")):
        assert words[:3] == ["python", "-m", "pipeline"]
        folder = [f"hydra.run.dir=out{number}"] if words[3] == "run" and "--help" not in words else []
        assert command(*words[3:], *folder) == 0, words
    scored = [json.loads(f.read_text())["metrics"] for f in Path().glob("out*/internal/scores.json")]
    assert [0 <= m["largest_cell"]["score"] <= 1 for m in scored if "largest_cell" in m] == [True]
