"""How far a run is with its charges: what its own ledgers say, and what a shared budget notes at each of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

#: How the line of a charge begins in a run's own ledger.
CHARGE = b'{"event"'


@dataclass(frozen=True)
class Mark:
    """A number of charges, and which they were.

    Attributes:
        charges: how many.
        digest: a chain over their lines, in the order of the charges.
    """

    charges: int = 0
    digest: str = ""

    def after(self, line: bytes) -> Mark:
        """The mark once this charge was added."""
        chain = hashlib.blake2b(self.digest.encode() + line, digest_size=16)
        return Mark(self.charges + 1, chain.hexdigest())


NONE = Mark()


def marks_of(ledgers: Iterable[Path]) -> list[Mark]:
    """The mark before a run's first charge, and after each.

    Args:
        ledgers: the run's own ledgers, in the order in which they were charged. A last line that was cut off by a crash
            is no charge: its noise was never drawn.
    """
    marks = [NONE]
    for path in ledgers:
        for line in path.read_bytes().split(b"\n")[:-1]:
            if line.startswith(CHARGE):
                marks.append(marks[-1].after(line))
    return marks
