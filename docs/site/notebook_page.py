"""Notebooks as pages (a hook of MkDocs): where a page names one, its cells stand as text and code."""

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
NAMED = re.compile(r"<!-- notebook: ([\w/-]+\.ipynb) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page's text with the notebooks that it names."""
    return NAMED.sub(lambda named: cells_as_text(DOCS / named[1]), markdown)


def cells_as_text(path: Path) -> str:
    """A notebook's cells, one after the other; code in fences."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(parts)
