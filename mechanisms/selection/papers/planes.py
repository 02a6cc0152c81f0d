"""Planes over finite fields: any two of q² + q + 1 points lie on exactly one of as many lines of q + 1 points.

Without the points of one line that is the affine plane: q² points on q² + q lines of q points. As views, its lines hold
every pair of q² attributes: 72 of 8 attributes for 64, the covering design that Li et al. 2021b, section 3.2, name.
"""

from __future__ import annotations

import itertools
from functools import cache

#: Prime powers up to 13, each as p and the lower coefficients, the constant first, of a monic polynomial that is
#: irreducible over the integers modulo p, so that its residues are a field of p^k elements.
FIELDS: dict[int, tuple[int, tuple[int, ...]]] = {
    2: (2, (0,)),
    3: (3, (0,)),
    4: (2, (1, 1)),  # x² + x + 1
    5: (5, (0,)),
    7: (7, (0,)),
    8: (2, (1, 1, 0)),  # x³ + x + 1
    9: (3, (1, 0)),  # x² + 1
    11: (11, (0,)),
    13: (13, (0,)),
}


def lines(q: int, points: int) -> list[tuple[int, ...]]:
    """The lines of the plane over the field of q elements, less the points beyond the first `points` of it.

    The first q² points are those of the affine plane, (x, y) as x·q + y; then come those at infinity: of each slope,
    and of x = c. Lines are y = m·x + b, x = c, and that at infinity; of each what is left, where that is two points
    or more.

    Args:
        q: a key of FIELDS.
        points: at most q² + q + 1.
    """
    left = [tuple(p for p in line if p < points) for line in _whole(q)]
    return [line for line in left if len(line) > 1]


@cache
def _whole(q: int) -> tuple[tuple[int, ...], ...]:
    """All lines of the plane."""
    sloped = [
        (*(x * q + _sum(q, _product(q, m, x), b) for x in range(q)), q * q + m)
        for m, b in itertools.product(range(q), repeat=2)
    ]
    upright = [(*(c * q + y for y in range(q)), q * q + q) for c in range(q)]
    return (*sloped, *upright, tuple(range(q * q, q * q + q + 1)))


def orders(points: int) -> list[int]:
    """The orders of the planes with so many points or more, the smallest first."""
    return [q for q in FIELDS if q * q + q + 1 >= points]


def _digits(q: int, element: int) -> list[int]:
    prime, lower = FIELDS[q]
    return [element // prime**i % prime for i in range(len(lower))]


def _number(q: int, digits: list[int]) -> int:
    return sum(d * FIELDS[q][0] ** i for i, d in enumerate(digits))


def _sum(q: int, one: int, other: int) -> int:
    """Element by element: polynomials over the integers modulo p, as numbers to the base p."""
    prime = FIELDS[q][0]
    return _number(q, [(a + b) % prime for a, b in zip(_digits(q, one), _digits(q, other), strict=True)])


def _product(q: int, one: int, other: int) -> int:
    """The product of two polynomials, less multiples of the irreducible one."""
    prime, lower = FIELDS[q]
    degree = len(lower)
    product = [0] * (2 * degree - 1)
    for i, a in enumerate(_digits(q, one)):
        for j, b in enumerate(_digits(q, other)):
            product[i + j] = (product[i + j] + a * b) % prime
    for top in range(len(product) - 1, degree - 1, -1):
        for i, c in enumerate(lower):
            product[top - degree + i] = (product[top - degree + i] - product[top] * c) % prime
    return _number(q, product[:degree])
