"""The notebook of docs/ runs from top to bottom, holds no output, and stands in the site as a page with what it shows.

Its code cells run once, in this process, by the hook that makes the page: what they name is looked at.
"""

import importlib.util
import json
from pathlib import Path

import pytest

from pipeline.statement.verify import verify

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOK = json.loads((DOCS / "notebook.ipynb").read_text(encoding="utf-8"))
CODE = [c for c in NOTEBOOK["cells"] if c["cell_type"] == "code"]


def test_the_notebook_is_whole_and_holds_no_output():
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    assert all(c["outputs"] == [] and c["execution_count"] is None for c in CODE)
    ids = [c["id"] for c in NOTEBOOK["cells"]]
    assert len(set(ids)) == len(ids) and len(CODE) > 8


@pytest.fixture(scope="module")
def ran() -> tuple[str, dict]:
    """The page of the site, and what its cells named."""
    path = DOCS / "site" / "notebook_page.py"
    spec = importlib.util.spec_from_file_location("notebook_page", path)
    assert spec is not None and spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    names: dict = {}
    text = (DOCS / "notebook.md").read_text(encoding="utf-8")

    def at_the_end(folder: Path) -> None:
        names["files"] = sorted(p.name for p in folder.iterdir())
        names["sound"] = verify(folder / "visits-release").sound

    return hook.on_page_markdown(text, names=names, at_the_end=at_the_end), names


def test_the_notebook_runs_from_top_to_bottom(ran):
    names = ran[1]
    release, frame, made, summer = (names[n] for n in ("release", "frame", "made", "summer"))
    assert release.private and names["again"].statement == release.statement
    assert made.dtypes.equals(frame.drop(columns="patient").dtypes) and len(made) == 2000
    assert names["again"].sample(5).dtypes.equals(made.dtypes), "kinds are kept"
    assert len(summer) == 500 and (summer["ward"] == "children").all()
    assert summer["day"].between("2025-06-15", "2025-08-31").all() and "exact" in summer.attrs["given"]["rows"]
    assert release.count({"age": [30, 50], "ward": "surgery"})["cut"][0].count("age") == 2
    assert names["files"] == ["visits-release", "visits-release.frame.json"] and names["sound"]
    assert made["age"].mean() == pytest.approx(frame["age"].mean(), abs=5)
    assert made.groupby("ward")["age"].mean()["children"] < 18 < made["age"].mean()


def test_the_page_of_the_site_shows_every_cell_with_its_tables_pictures_and_texts(ran):
    page = ran[0]
    assert all("".join(c["source"]) in page for c in NOTEBOOK["cells"])
    assert "<!-- notebook" not in page and page.count("```python") == len(CODE)
    assert page.count('<div class="output">') >= 8 and page.count("data:image/svg+xml") == 1
    assert "no column loses more than" in page, "what is printed"
