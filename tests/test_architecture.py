"""The house: rooms, doors and sizes."""

import ast
import re
import subprocess
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("mechanisms", "synthesis", "evaluation", "pipeline")
SOURCES = sorted(p for room in ROOMS for p in (ROOT / room).rglob("*.py"))
MAX_LINES = 400
MODULES = [p for p in SOURCES if p.name not in {"__init__.py", "__main__.py"}]
MAX_BODY = 60
MAX_IMPORTS = 25
#: Modules that import more of ours, and how many at most. The list may only shrink: no entry, no number is raised.
MANY_IMPORTS = {
    "pipeline.experiments.challenge": 36,
    "pipeline.experiments.table1_histograms": 27,
}


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Every node of a file, the module first."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def test_every_file_says_what_it_is_for_and_fits_in_a_small_room():
    for path in SOURCES:
        assert ast.get_docstring(nodes(path)[0]), f"{path}: the first line says what the file is for"
        assert path.read_text(encoding="utf-8").count("\n") <= MAX_LINES, path
        for function in (n for n in nodes(path) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)):
            doc = ast.get_docstring(function) or ""
            assert function.end_lineno is not None
            assert function.end_lineno - function.lineno - doc.count("\n") <= MAX_BODY, (path, function.name)


def test_no_two_modules_share_a_name():
    assert [name for name, n in Counter(p.stem for p in MODULES).items() if n > 1] == []


def names_in(path: Path) -> set[str]:
    """What a file names anew: itself, functions, classes, arguments and variables."""
    names = {path.stem}
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def empty_names(path: Path) -> list[str]:
    """Names of a file that say only that a thing was found or made."""
    empty = {"found", "known", "said", "made", "wanted", "kept", "told"}
    words = {name: {w.lower() for w in re.split(r"_|(?<=[a-z])(?=[A-Z])", name)} for name in names_in(path)}
    return [name for name, own in words.items() if own & empty]


def test_no_name_says_only_that_a_thing_was_found_or_made():
    for path in SOURCES:
        assert empty_names(path) == [], path


def test_no_two_public_classes_share_a_name():
    names = Counter(n.name for p in SOURCES for n in nodes(p) if isinstance(n, ast.ClassDef) and n.name[0] != "_")
    assert [name for name, n in names.items() if n > 1] == []


@cache
def imported() -> dict[str, set[str]]:
    """Each module of ours → the modules of ours that it names in any import, late ones and those for types included."""
    names = {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p for p in SOURCES}
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        given: set[str] = set()
        for node in nodes(path):
            if isinstance(node, ast.Import):
                given |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                whole = {f"{node.module}.{alias.name}" for alias in node.names}
                given |= {w if w in names else node.module for w in whole}
        graph[name] = {g for g in given if g in names and g != name}
    return graph


def test_no_import_leads_back_to_where_it_came_from():
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()
    graph = imported()
    assert sum(map(len, graph.values())) > 1000
    TopologicalSorter(graph).prepare()


def test_no_module_imports_more_of_ours_than_a_reader_can_hold():
    many = {name: len(ours) for name, ours in imported().items() if len(ours) > MAX_IMPORTS}
    assert {name: n for name, n in many.items() if n > MANY_IMPORTS.get(name, MAX_IMPORTS)} == {}, "split it"
    assert MANY_IMPORTS.keys() - many.keys() == set(), "it imports few by now: take it off the list"


def test_no_stub_and_no_swallowed_error():
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"NotImplementedError|\bTODO\b|\bFIXME\b|\bXXX\b", text), path
        assert not re.search(r"^\s*(<{7}|>{7})", text, re.MULTILINE), f"{path}: two versions of a merge"
        for node in (n for n in nodes(path) if isinstance(n, ast.ExceptHandler)):
            assert node.type is not None, f"{path}: a bare except"
            assert not (len(node.body) == 1 and isinstance(node.body[0], ast.Pass | ast.Continue)), (path, node.lineno)


def test_raw_rows_are_imported_by_the_pipeline_alone():
    for path in SOURCES:
        if path.relative_to(ROOT).parts[0] == "pipeline" or "sensitive" in path.parts:
            continue
        assert "mechanisms.sensitive" not in path.read_text(encoding="utf-8"), path


def test_no_file_names_a_place_of_one_machine_or_a_registry():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in listed:
        path = ROOT / name
        if not path.is_file() or path.suffix in {".png", ".gz"}:
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        assert not re.search(r"(?<![\w.])/(work|farm)/|pypi\.org|files\.pythonhosted|index-url", text) or path == Path(
            __file__
        ), name


def test_the_page_on_the_architecture_names_what_stands_where_it_says():
    """Each entry of "Where is …?" is a file, from the top or beside the one before, and a name that it defines."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = text.partition("## Where is")[2].partition("\n## ")[0]
    entries, folder = re.findall(r"`([\w/]+\.py)(?::(\w+))?`", table), Path()
    assert len(entries) > 40
    for file, name in entries:
        folder = Path(file).parent if "/" in file else folder
        tree = ast.parse((ROOT / folder / Path(file).name).read_text(encoding="utf-8"))
        defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        defined |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
        defined |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
        assert not name or name in defined, f"{file}: {name}"
