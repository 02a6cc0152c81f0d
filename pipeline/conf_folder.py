"""Where the settings' files are: at the top of a checkout, inside the package once it is installed."""

from __future__ import annotations

from pathlib import Path

_PACKAGED = Path(__file__).resolve().parent / "conf"
CONF = _PACKAGED if _PACKAGED.is_dir() else _PACKAGED.parents[1] / "conf"
SCHEMAS = CONF / "schemas"
