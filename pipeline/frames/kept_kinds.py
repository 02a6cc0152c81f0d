"""The kinds of a frame's columns, kept beside a saved release, so that a loaded one gives frames of the same kinds.

The file is no part of the release, and says nothing of rows; without it the kinds are those of the schema.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.json_values import JsonDict
from pipeline.frames.frame_files import Kinds
from pipeline.frames.frame_kinds import Kind
from pipeline.statement.digests import MANIFEST, file_digest

FORMAT = "frame-kinds/1"


def kinds_file(release: Path) -> Path:
    """The file beside the release folder."""
    return release.with_name(f"{release.name}.frame.json")


def keep_kinds(release: Path, kinds: Kinds, form: str) -> None:
    """Write them beside the folder.

    Args:
        form: of the library whose frames `sample` gives.
    """
    facts = {"format": FORMAT, "release": file_digest(release / MANIFEST), "form": form}
    columns = {name: _written(kind) for name, kind in kinds.items()}
    write_whole(kinds_file(release), json.dumps({**facts, "columns": columns}, indent=1, ensure_ascii=False) + "\n")


def kept_kinds(release: Path) -> tuple[Kinds, str]:
    """The kinds that were kept of this very release, and the form of its frames; none, and pandas, else.

    Raises:
        UserError: the file is damaged, or of a later version.
    """
    path, manifest = kinds_file(release), release / MANIFEST
    if not path.is_file() or not manifest.is_file():
        return {}, "pandas"
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise ValueError(f"format {facts['format']}")
        if facts["release"] != file_digest(manifest):
            return {}, "pandas"
        return {name: _read(name, column) for name, column in facts["columns"].items()}, str(facts["form"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, pa.ArrowException) as error:
        fix = "move it away: columns have the kinds of the schema then"
        raise UserError(f"no kinds of a frame's columns ({error})", where=str(path), fix=fix) from error


def _written(kind: Kind) -> JsonDict:
    exact, label = kind.exact, kind.label.item() if hasattr(kind.label, "item") else kind.label
    facts: JsonDict = {"family": kind.family, "category": kind.category, "ordered": kind.ordered}
    facts |= {"label": label} if isinstance(label, int) else {}
    if isinstance(exact, pa.DataType):
        facts["arrow"] = base64.b64encode(pa.schema([("", exact)]).serialize().to_pybytes()).decode()
    elif exact is not None:
        facts["dtype"] = str(exact)
    return facts


def _read(name: str, facts: JsonDict) -> Kind:
    exact: Any = None
    if "arrow" in facts:
        exact = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(facts["arrow"]))).field(0).type
    elif "dtype" in facts:
        exact = pd.api.types.pandas_dtype(facts["dtype"])
    return Kind(facts.get("label", name), str(facts["family"]), exact, bool(facts["category"]), bool(facts["ordered"]))
