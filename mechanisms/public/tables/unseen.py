"""Characters that show nothing, and bytes as texts: as an id, a text of such characters is none, and bytes are one."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from functools import cache

#: Characters that show nothing, beside those of the categories Cf and Cc: Unicode's default ignorable code points
#: (DerivedCoreProperties: joiners, fillers, variation selectors, tags), and the empty braille cell.
_UNSEEN = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
)


@cache
def _unseen() -> re.Pattern[str]:
    """Compiled when it is needed: so wide a set takes a twentieth of a second."""
    return re.compile(_UNSEEN)


def seen(text: str) -> str:
    """A text without the characters that show nothing; spaces stay."""
    return "".join(c for c in _unseen().sub("", text) if unicodedata.category(c) not in ("Cf", "Cc"))


def text_of_bytes(value: bytes) -> str:
    """Bytes as the text that they are; those that are none, or show nothing, as their numbers: no two are one."""
    with suppress(UnicodeDecodeError):
        if seen(text := value.decode()).strip():
            return text
    return "".join(f"\\x{byte:02X}" for byte in value)
