"""What a draft and `check` say of a made-up table in the current folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tests.pipeline.conftest import command, reply

#: The head of a schema that a person confirmed.
FORM = "source: a form\nconfirmed_public: true\n"


def drafted(cells: Mapping[str, Sequence[object]]) -> tuple[dict[str, Any], str]:
    """The columns of a draft of these cells, and its text, which is s.yaml."""
    pd.DataFrame(cells).to_csv("t.csv", index=False)
    Path("s.yaml").unlink(missing_ok=True)
    assert command("schema", "t.csv", "output=s.yaml") == 0
    text = Path("s.yaml").read_text()
    return yaml.safe_load(text)["columns"], text


def checked(
    capsys: pytest.CaptureFixture[str],
    cells: Mapping[str, Sequence[object]],
    declared: str | Mapping[str, object] | None = None,
    *more: str,
    **rules: object,
) -> dict[str, Any]:
    """What `check` says of a table under these columns (a schema's text, its columns alone), or under its draft.

    Args:
        rules: what stands beside the columns of the schema.
    """
    if declared is None:
        drafted(cells)
    else:
        columns = json.dumps(declared) if isinstance(declared, Mapping) else f"{{{declared}}}"
        text = declared if str(declared).startswith("columns:") else f"columns: {columns}"
        pd.DataFrame(cells).to_csv("t.csv", index=False)
        Path("t.yaml").write_text("\n".join([FORM + text, *(f"{n}: {json.dumps(r)}" for n, r in rules.items())]))
    schema = "s.yaml" if declared is None else "t.yaml"
    return json.loads(reply(capsys, "check", "data.path=t.csv", f"data.schema={schema}", "format=json", *more).out)


def guess_of(text: str, column: str) -> str:
    """The comment of a draft about a column, above it or behind it."""
    lines = text.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith((f"  {column}:", f'  - "{column}"')))
    return lines[place] if lines[place].startswith("  - ") else lines[place - 1]
