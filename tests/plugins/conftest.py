"""The modules of docs/adding in a folder of their own, and registries that forget them after each test."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hydra.core.config_store import ConfigStore

from mechanisms.public.noise_kinds import NOISE_KINDS
from pipeline.plugins import plugin_discovery
from pipeline.plugins.offers import offered_by
from pipeline.plugins.origins import _digest
from pipeline.plugins.registries import REGISTRIES, _texts
from pipeline.settings.experiment_list import FILES

ROOT = Path(__file__).parents[2]
PAGES = {p.stem: p.read_text(encoding="utf-8") for p in sorted((ROOT / "docs" / "adding").glob("*.md"))}
BLOCK = re.compile(r"((?:<!-- .*? -->\n)*)```(bash|yaml|python|toml|diff)\n(.*?)```", re.DOTALL)
#: Kinds that are choices of the command line.
GROUPS = tuple(r.kind for r in REGISTRIES.values() if r.settings is not None)


def blocks(page: str) -> list[tuple[dict[str, str], str]]:
    """The comments and the text of each block of a page."""
    return [(dict(re.findall(r"<!-- (\w+):? ?(.*?) -->", said)), text) for said, _, text in BLOCK.findall(PAGES[page])]


def plugin_modules() -> dict[str, str]:
    """Name → text of each module that the pages write: a whole one, or a file of the project with its plugin's line."""
    written: dict[str, str] = {}
    for page in PAGES:
        last = ""
        for marks, text in blocks(page):
            if "file" in marks and marks["file"].endswith(".py"):
                last = text
            if "module" in marks:
                written[marks["module"]] = text
            if "plugin" in marks:
                written[marks["plugin"]] = f"{last}\n\n{text}"
    return written


def write_modules(folder: Path) -> Path:
    """All of them, as files of a folder, and the file that an experiment has beside its module."""
    (folder / "conf" / "experiment").mkdir(parents=True, exist_ok=True)
    for marks, text in blocks("experiment"):
        if marks.get("file", "").endswith(".yaml"):
            (folder / marks["file"]).write_text(text, encoding="utf-8")
    for name, text in plugin_modules().items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def forgetful() -> Iterator[None]:
    """What a test loads is gone after it."""
    every = [getattr(r.things, "_given", r.things) for r in REGISTRIES.values()]  # as they are given: nothing is loaded
    every += [NOISE_KINDS, FILES, offered_by, _texts]  # type: ignore[list-item]
    before = [dict(things) for things in every]
    loaded, path, known = set(plugin_discovery._loaded), list(sys.path), set(sys.modules)
    choices = ConfigStore.instance().repo
    ready = {group: set(choices.get(group, {})) for group in GROUPS}
    _digest.cache_clear()
    yield
    for things, kept in zip(every, before, strict=True):
        things.clear()
        things.update(kept)
    plugin_discovery._loaded.clear()
    plugin_discovery._loaded.update(loaded)
    sys.path[:] = path
    for name in set(sys.modules) - known:
        if name.partition(".")[0] in {*plugin_modules(), "mine", "shop", "other"}:
            del sys.modules[name]
    for group, names in ready.items():
        for name in set(choices.get(group, {})) - names:
            del choices[group][name]


@pytest.fixture
def shelf(forgetful: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: the modules of the pages, a table and its schema."""
    from tests.pipeline.conftest import SCHEMA, people

    write_modules(tmp_path)
    people(600).to_csv(tmp_path / "town.csv", index=False)
    (tmp_path / "town.yaml").write_text(SCHEMA, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def install(folder: Path, name: str, modules: Sequence[str], version: str = "1.2") -> Path:
    """A package of that name installed into a folder, with these modules at its top."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "top_level.txt").write_text("\n".join(modules))
    return folder
