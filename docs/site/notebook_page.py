"""Notebooks as pages (a hook of MkDocs): where a page names one, its cells run, and stand as text, code and output.

They run in this process, as the tests run them: a kernel and its libraries would add nothing but themselves.
"""

import ast
import base64
import contextlib
import html
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
NAMED = re.compile(r"<!-- notebook: ([\w/-]+\.ipynb) -->")


def on_page_markdown(
    markdown: str,
    *,
    names: dict[str, Any] | None = None,
    at_the_end: Callable[[Path], None] = lambda folder: None,
    **_: Any,
) -> str:
    """The page's text with the notebooks that it names.

    Args:
        names: takes what the cells name; a test looks at it.
        at_the_end: is handed the folder in which the cells ran, before it is gone.
    """
    own = {} if names is None else names
    return NAMED.sub(lambda named: cells_as_text(DOCS / named[1], own, at_the_end), markdown)


def cells_as_text(path: Path, names: dict[str, Any], at_the_end: Callable[[Path], None]) -> str:
    """A notebook's cells, one after the other; code in fences, with what it shows below."""
    parts: list[str] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(text)
            else:
                parts += [f"```python\n{text}\n```", *shown(text, names)]
        at_the_end(Path(folder))
    return "\n\n".join(parts)


def shown(code: str, names: dict[str, Any]) -> list[str]:
    """What a notebook shows of a cell: what it prints, and its last value as a table, a picture or text."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    parts = [f"```text\n{printed.getvalue().rstrip()}\n```"] if printed.getvalue() else []
    parts += pictures()
    if value is None:
        return parts
    made = value._repr_html_() if hasattr(value, "_repr_html_") else None
    if made is None:
        return [*parts, f"```text\n{html.unescape(str(value))}\n```"]
    # one block of HTML: an empty line would end it
    return [*parts, '<div class="output">' + re.sub(r"\n\s*", "\n", made).strip() + "</div>"]


def pictures() -> list[str]:
    """The figures that a cell drew, as a notebook shows them at its end, inside the page."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    import matplotlib.pyplot as plt

    made = []
    for number in plt.get_fignums():
        file = io.BytesIO()
        plt.figure(number).savefig(file, format="svg")
        made.append(f"![](data:image/svg+xml;base64,{base64.b64encode(file.getvalue()).decode()})")
    plt.close("all")
    return made
