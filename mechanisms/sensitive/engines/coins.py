"""Keyed coins: which records truncation keeps, and which are set aside, on every engine and in any order of the rows.

A record is known by its unit, by its content (a digest of the texts of all columns of the file, under the secret key,
so that nobody can write two records of one digest) and by its number among those that are equal in both. The coin is a
hash of these under the same key: so it depends neither on where a row stands in the file nor on how the file is cut
into parts, and equal records have coins of their own.
"""

from __future__ import annotations

from mechanisms.public.errors import UserError
from mechanisms.public.tables.scan import Source

#: Hexadecimal digits of a coin.
DIGITS = 16


def content(source: Source, key: bytes) -> str:
    """SQL for the content of a row: a digest of the key and the texts of all columns, each behind its length."""
    texts = [source.text(index) for index in range(len(source.names))]
    parts = ", ".join(f"length({text}), ':', {text}" for text in texts)
    return f"sha256(concat('{key.hex()}:content:', {parts}))"


def of_truncation(key: bytes) -> str:
    """What is hashed before content, number and unit, for the coin by which truncation orders the records of a unit."""
    return f"{key.hex()}:kept:"


def of_unit_aside(key: bytes) -> str:
    """What is hashed before a unit's id, for the coin that sets it aside."""
    return f"{key.hex()}:aside:"


def of_row_aside(key: bytes) -> str:
    """What is hashed before content and number, for the coin that sets a record aside which is a unit of its own."""
    return f"{key.hex()}:aside row:"


def of_value(key: bytes, column: str) -> str:
    """What is hashed before unit and value, for the coin by which the values of a unit in a column are chosen."""
    return f"{key.hex()}:values:{column}:"


def below(share: float) -> str:
    """Coins below this one come up with the given probability.

    Raises:
        UserError: no share between 0 and 1.
    """
    if not 0 < share < 1:
        raise UserError(f"got {share}", where="evaluation.holdout", fix="a share of the units between 0 and 1, or null")
    return f"{int(share * 2**64):0{DIGITS}x}"
