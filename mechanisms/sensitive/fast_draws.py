"""The draws of deviates.py in compiled whole numbers, as far as the first digits of each uniform number decide them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Ints
from mechanisms.public.jit import compiled

Pieces = NDArray[np.uint32]

#: Whole parts from here on are left to the slow way: they come with probability e⁻¹²⁸ at most.
WHOLE = 128
#: Beyond this shift a scale is below 2⁻¹⁰, and no draw with a whole part below WHOLE leaves 0.
SHIFT = 126

_NO, _YES, _OPEN = 0, 1, 2
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_TOP = np.uint64(31)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@compiled
def fill(
    normal: bool, pieces: Pieces, at: int, scale: tuple[np.uint64, int, int], draws: Ints, done: int
) -> tuple[int, int]:
    """Draws from pieces[at:] into draws[:, done:], until one is open or pieces are missing.

    A draw is open where the first 32 digits of two uniform numbers agree, where the digits of x do not decide how it is
    rounded, or where its whole part is WHOLE or more.

    Args:
        scale: mantissa, shift and split: the scale is mantissa · 2**(64 − shift) lattice units.
        draws: a row of whole numbers and a row of rests: a draw is whole · 2**split + rest.
    Returns:
        how many draws stand, and where the pieces of the next one begin.
    """
    mantissa, shift, split = scale
    whole, rest = draws[0], draws[1]
    mask = (1 << split) - 1
    while done < whole.size:
        if at >= pieces.size:
            return done, at
        if normal:
            k, x, end = _half_normal(pieces, at + 1)
        else:
            k, x, end = _exponential(pieces, at + 1)
        if k >= WHOLE:
            return done, at
        if shift > SHIFT:
            whole[done], rest[done] = 0, 0
        else:
            high, low = _product(mantissa, np.uint64(k), x)
            high, low = _plus_half(high, low, shift)
            near = _shifted(high, low, shift)
            above = low + (mantissa - _ONE)
            carried = high + _ONE if above < low else high
            if _shifted(carried, above, shift) != near:
                return done, at
            a, b = np.int64(_shifted(high, low, shift + split)), np.int64(near) & mask
            if np.uint64(pieces[at]) >> _TOP:
                whole[done], rest[done] = (-a - 1, mask + 1 - b) if b else (-a, 0)
            else:
                whole[done], rest[done] = a, b
        done, at = done + 1, end
    return done, at


@compiled
def _half_normal(pieces: Pieces, at: int) -> tuple[int, np.uint64, int]:
    """k, the first digits of x, and where the pieces go on; k = WHOLE: open."""
    while True:
        k, verdict = -1, _YES
        while verdict == _YES:
            k += 1
            verdict, at = _root_e(pieces, at)
        if verdict == _OPEN or k >= WHOLE:
            return WHOLE, _ZERO, at
        verdict = _YES
        for _ in range(k * (k - 1)):
            verdict, at = _root_e(pieces, at)
            if verdict != _YES:
                break
        if verdict == _YES:
            if at + 1 >= pieces.size:
                return WHOLE, _ZERO, at
            x = _x(pieces, at)
            at += 2
            for _ in range(k + 1):
                verdict, at = _run_of_parts(pieces, at, k, x)
                if verdict != _YES:
                    break
            if verdict == _YES:
                return k, x, at
        if verdict == _OPEN:
            return WHOLE, _ZERO, at


@compiled
def _exponential(pieces: Pieces, at: int) -> tuple[int, np.uint64, int]:
    """k, the first digits of x, and where the pieces go on; k = WHOLE: open."""
    for k in range(WHOLE):
        if at + 1 >= pieces.size:
            break
        x = _x(pieces, at)
        verdict, at = _run(pieces, at + 2, x >> _HALF)
        if verdict == _YES:
            return k, x, at
        if verdict == _OPEN:
            break
    return WHOLE, _ZERO, at


@compiled
def _root_e(pieces: Pieces, at: int) -> tuple[int, int]:
    if at >= pieces.size:
        return _OPEN, at
    first = np.uint64(pieces[at])
    if first >> _TOP:
        return _YES, at + 1
    verdict, at = _run(pieces, at + 1, first)
    return (_OPEN if verdict == _OPEN else _YES - verdict), at


@compiled
def _run(pieces: Pieces, at: int, last: np.uint64) -> tuple[int, int]:
    """Whether an even number of pieces descend from `last`."""
    even = _YES
    while at < pieces.size:
        piece = np.uint64(pieces[at])
        at += 1
        if piece > last:
            return even, at
        if piece == last:
            break
        even, last = _YES - even, piece
    return _OPEN, at


@compiled
def _run_of_parts(pieces: Pieces, at: int, k: int, x: np.uint64) -> tuple[int, int]:
    """The same from x, where a piece counts with probability (2k + x)/(2k + 2) only: the next one decides that."""
    even, last = _YES, x >> _HALF
    factor, edge = np.uint64(2 * k + 2), (np.uint64(2 * k) << _HALF) + last
    while at + 1 < pieces.size:
        piece, low = np.uint64(pieces[at]), np.uint64(pieces[at + 1]) * factor
        if piece > last:
            return even, at + 1
        at += 2
        if piece == last:
            break
        if low > edge:
            return even, at
        if low + factor > edge:
            break
        even, last = _YES - even, piece
    return _OPEN, at


@compiled
def _x(pieces: Pieces, at: int) -> np.uint64:
    """64 digits."""
    return (np.uint64(pieces[at]) << _HALF) | np.uint64(pieces[at + 1])


@compiled
def _product(left: np.uint64, k: np.uint64, x: np.uint64) -> tuple[np.uint64, np.uint64]:
    """left · (k · 2**64 + x) in two pieces."""
    a, b = left >> _HALF, left & _LOW
    c, d = x >> _HALF, x & _LOW
    lowest = b * d
    middle = a * d + (lowest >> _HALF)
    other = b * c + (middle & _LOW)
    high = a * c + (middle >> _HALF) + (other >> _HALF)
    return high + left * k, (other << _HALF) | (lowest & _LOW)


@compiled
def _plus_half(high: np.uint64, low: np.uint64, shift: int) -> tuple[np.uint64, np.uint64]:
    """The two pieces plus 2**(shift − 1)."""
    if shift > 64:
        return high + (_ONE << np.uint64(shift - 65)), low
    total = low + (_ONE << np.uint64(shift - 1))
    return (high + _ONE if total < low else high), total


@compiled
def _shifted(high: np.uint64, low: np.uint64, by: int) -> np.uint64:
    """The lowest word of the two, shifted to the right by at least 1."""
    if by >= 128:
        return _ZERO
    if by >= 64:
        return high >> np.uint64(by - 64)
    return (high << np.uint64(64 - by)) | (low >> np.uint64(by))
