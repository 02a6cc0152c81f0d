"""How the text of a table's file is written: what stands between cells, and which bytes are which letters."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.schema.discover_fields import check_fields

#: What dates, numbers and texts hold: between cells that are written without quotes it would be part of them.
IN_CELLS = set(".+-:/ ")
FIELDS = ("delimiter", "encoding")
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1")
#: Those that are guessed of bytes that are no UTF-8.
WESTERN = ("cp1252", "latin-1")
#: Encodings in which a letter's bytes say all: no cell changes how later bytes are read, none makes a line of its own.
STATELESS = re.compile(
    r"ascii|utf-8(-sig)?|utf-(16|32)(-[lb]e)?|cp\d+|latin-?1|iso8859-\d+|koi8-\w|mac-\w+"
    r"|gb18030|gbk|gb2312|big5(hkscs)?|shift_jis(x0213|_2004)?|euc_(jp|jis_2004|jisx0213|kr)"
)


@dataclass(frozen=True)
class Dialect:
    """A CSV file's.

    Attributes:
        delimiter: one character.
        encoding: a name that Python's codecs know; utf-8-sig begins with a mark of its own.
    """

    delimiter: str = ","
    encoding: str = "utf-8"

    def checked(self, where: str) -> Dialect:
        """Itself.

        Raises:
            UserError: a delimiter that cannot be one; an unknown encoding, or one in which cells change other rows.
        """
        # of one with several bytes the engine reads otherwise what lies where it stops to fetch more of the file
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n\0' or not self.delimiter.isascii():
            fix = "one character of ASCII, for example ';' or '\\t'; write a file with another one anew"
            raise UserError(f"got {self.delimiter!r}", where=f"{where}delimiter", fix=fix)
        try:
            name = codecs.lookup(self.encoding).name
        except (LookupError, ValueError):  # a zero byte
            name = ""
        if not STATELESS.fullmatch(name):
            allowed = f"one of {', '.join(ENCODINGS)}, or another without states or escapes (docs/where-data-lies.md)"
            near = "" if name else did_you_mean(self.encoding, ENCODINGS)
            fix = near or f"{allowed}; or convert the file: iconv -f … -t UTF-8"
            why = " for tables: one cell may change how other rows are read" if name else ""
            raise UserError(f"no encoding {self.encoding!r}{why}", where=f"{where}encoding", fix=fix)
        return self

    @property
    def bytes_are_utf8(self) -> bool:
        """Whether the engine reads the file as it stands."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")

    @property
    def fields(self) -> dict[str, str]:
        """What is not as in every other file."""
        return {f: getattr(self, f) for f in FIELDS if getattr(self, f) != getattr(PLAIN, f)}

    @property
    def remark(self) -> str:
        """The comment of a draft: any bytes are letters of the West, so that a guess of them may be wrong."""
        words = "how the file is written; a release is, too"
        doubt = "where its letters look wrong (z³oty, not złoty), draft with encoding=cp1250, cp1251, …"
        return f"{words}; {doubt}" if self.encoding in WESTERN else words


#: Commas and UTF-8.
PLAIN = Dialect()


def parse_dialect(given: Any, where: str) -> Dialect:
    """A dialect that can be written, too, from a mapping.

    Raises:
        UserError: another field; a delimiter that stands in cells; no encoding.
    """
    if not isinstance(given, Mapping) or not all(isinstance(v, str) for v in given.values()):
        raise UserError(
            f"got {given!r}", where=where, fix='{delimiter: ";", encoding: cp1252}; of a release, table or plain'
        )
    check_fields(given, FIELDS, "", where)
    dialect = Dialect(**given).checked(f"{where}.")
    if dialect.delimiter in IN_CELLS or dialect.delimiter.isalnum() or not dialect.delimiter.isascii():
        fix = "one that no number and no date holds: , ; | or a tab"
        raise UserError(f"got {dialect.delimiter!r}", where=f"{where}.delimiter", fix=fix)
    return dialect
