"""Normal and exponential draws by comparisons of uniform numbers alone, rounded exactly: the law as it is proved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

#: Takes n; gives the next n independent uniform 64-bit words of a stream.
Words = Callable[[int], NDArray[np.uint64]]

#: Binary digits that are read at a time: half a word of the stream.
PIECE = 32
#: No part of a draw above the split is larger; answers are clipped so that this changes none of them.
SATURATED = 1 << 62
#: Words that are fetched at a time, at most.
BLOCK = 1 << 16


@dataclass(eq=False)
class Reader:
    """A stream of words, read in pieces of 32 digits one after the other, and never twice.

    Attributes:
        more: the stream.
        ahead: how many words are fetched when there are none left.
        block: the pieces fetched last; `at`: the place of the next one.
        refined: how many pieces went into further digits of numbers that had some.
    """

    more: Words
    ahead: int = PIECE
    block: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    at: int = 0
    refined: int = 0

    def fetch(self) -> None:
        """A new block, where nothing is left of the last one."""
        if self.at == self.block.size:
            self.block, self.at = self.more(self.ahead).view(np.uint32), 0

    def piece(self) -> int:
        """The next 32 digits."""
        self.fetch()
        self.at += 1
        return int(self.block[self.at - 1])


@dataclass(eq=False)
class Deviate:
    """A uniform number in (0, 1) whose binary digits are read when they are needed.

    Attributes:
        digits: the first `length` of them, as one whole number.
    """

    reader: Reader
    digits: int
    length: int = PIECE

    def refine(self) -> None:
        """Read one more piece."""
        self.digits, self.length = self.digits << PIECE | self.reader.piece(), self.length + PIECE
        self.reader.refined += 1


@dataclass(frozen=True)
class Dyadic:
    """The number mantissa · 2**exponent, the mantissa of 53 bits."""

    mantissa: int
    exponent: int

    @classmethod
    def of(cls, value: float, bits: int) -> Dyadic:
        """A float above 0, times 2**bits, without any rounding."""
        fraction, exponent = math.frexp(value)
        return cls(int(math.ldexp(fraction, 53)), exponent - 53 + bits)


def uniform(reader: Reader) -> Deviate:
    """A new number, of 32 digits."""
    return Deviate(reader, reader.piece())


def uniform_x(reader: Reader) -> Deviate:
    """A new number of 64 digits, for what will be rounded."""
    return Deviate(reader, reader.piece() << PIECE | reader.piece(), 2 * PIECE)


def less(left: Deviate, right: Deviate, *, factor: int = 1, offset: int = 0) -> bool:
    """Whether factor · left < offset + right, however many digits that takes."""
    while True:
        length = max(left.length, right.length)
        coarse, fine = length - left.length, length - right.length
        low, lower = (left.digits * factor) << coarse, (offset << length) + (right.digits << fine)
        if low + (factor << coarse) <= lower:
            return True
        if lower + (1 << fine) <= low:
            return False
        (left if left.length <= right.length else right).refine()


def even_run(reader: Reader, last: Deviate, *, further: Callable[[], bool] = lambda: True) -> bool:
    """Whether an even number of further uniform numbers descend from `last` (von Neumann 1951).

    A number counts if it is below the one before and `further` says so, with probability p each time: n of them or more
    with probability (p x)ⁿ/n!, x being the value of `last`, hence an even number with probability e^(−p x).
    """
    even = True
    while True:
        following = uniform(reader)
        if not (less(following, last) and further()):
            return even
        even, last = not even, following


#: |Z| of a law at scale 1, as k + x with the digits of x not all read yet.
Half = Callable[[Reader], tuple[int, Deviate]]


def root_e(reader: Reader) -> bool:
    """True with probability e^(−1/2): an even number of numbers descend from 1/2."""
    first = uniform(reader)
    if first.digits >> (PIECE - 1):
        return True
    return not even_run(reader, first)


def half_normal(reader: Reader) -> tuple[int, Deviate]:
    """|Z| of a standard normal Z, as k + x (Karney 2016, algorithm N).

    k comes with probability in proportion to e^(−k/2) · e^(−k(k−1)/2) = e^(−k²/2), x with density in proportion to
    e^(−x(2k+x)/2) by k + 1 runs of e^(−x(2k+x)/(2k+2)) each: in all e^(−(k+x)²/2).
    """
    while True:
        k = 0
        while root_e(reader):
            k += 1
        if not all(root_e(reader) for _ in range(k * (k - 1))):
            continue
        x = uniform_x(reader)
        if all(even_run(reader, x, further=lambda: _part(reader, k, x)) for _ in range(k + 1)):  # noqa: B023
            return k, x


def _part(reader: Reader, k: int, x: Deviate) -> bool:
    """True with probability (2k + x)/(2k + 2)."""
    return less(uniform(reader), x, factor=2 * k + 2, offset=2 * k)


def exponential(reader: Reader) -> tuple[int, Deviate]:
    """A standard exponential number, as k + x (von Neumann 1951).

    x is accepted with probability e^(−x), so that a trial fails with probability 1/e: k counts the trials that failed.
    """
    k = 0
    while True:
        x = uniform_x(reader)
        if even_run(reader, x):
            return k, x
        k += 1


def rounded(k: int, x: Deviate, scale: Dyadic) -> int:
    """floor(scale · (k + x) + 1/2), from as many digits of x as it takes for both ends of their interval to agree."""
    while True:
        shift = x.length - scale.exponent
        low = scale.mantissa * ((k << x.length) + x.digits) + (1 << (shift - 1))
        if low >> shift == (low + scale.mantissa - 1) >> shift:
            return low >> shift
        x.refine()


def signed(reader: Reader, half: Half, scale: Dyadic, *, split: int) -> tuple[int, int]:
    """One draw of ±(k + x) · scale, rounded to the nearest whole number: a sign, then its absolute value.

    Returns:
        the number as (a, b): a · 2**split + b with 0 ≤ b < 2**split; a is at most ±SATURATED.
    """
    negative = reader.piece() >> (PIECE - 1)
    k, x = half(reader)
    size = min(rounded(k, x, scale), SATURATED << split)
    number = -size if negative else size
    return number >> split, number & ((1 << split) - 1)
