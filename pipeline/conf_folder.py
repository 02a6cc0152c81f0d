"""Where the settings' files are: at the top of a checkout, inside the package once it is installed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from mechanisms.public.errors import UserError

_PACKAGED = Path(__file__).resolve().parent / "conf"
CONF = _PACKAGED if _PACKAGED.is_dir() else _PACKAGED.parents[1] / "conf"
SCHEMAS = CONF / "schemas"
#: The setting by which Hydra looks for files of settings in other folders too.
SEARCH = "hydra.searchpath"


def with_own_folder(arguments: Sequence[str]) -> list[str]:
    """`--config-dir FOLDER` or `--config-dir=FOLDER` (Hydra's spelling) as a setting; other arguments stay.

    Raises:
        UserError: no such folder, or the search path is set as well.
    """
    remaining: list[str] = []
    folders: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        flag, given, value = argument.partition("=")
        if flag == "--config-dir":
            folders.append(value if given else next(rest, ""))
        else:
            remaining.append(argument)
    for folder in folders:
        if not folder or not Path(folder).is_dir():
            fix = "--config-dir FOLDER, with data/mine.yaml for data=mine"
            raise UserError(f"no folder {folder!r}", where="--config-dir", fix=fix)
    if not folders:
        return remaining
    if any(a.startswith(f"{SEARCH}=") for a in remaining):
        raise UserError("both are set", where=f"--config-dir, {SEARCH}", fix="one of the two")
    paths = ",".join(json.dumps(f"file://{Path(f).resolve()}", ensure_ascii=False) for f in folders)
    return [*remaining, f"{SEARCH}=[{paths}]"]
