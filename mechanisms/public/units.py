"""Units in the type: privacy parameters, the neighbouring relation, and rounding against ourselves."""

from __future__ import annotations

import enum
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Literal, NewType

from mechanisms.public.errors import UserError

Epsilon = NewType("Epsilon", float)
Delta = NewType("Delta", float)
Rho = NewType("Rho", float)  # of zero-concentrated differential privacy (zCDP)
Mu = NewType("Mu", float)  # of Gaussian differential privacy (GDP)

#: The id of the charge for the histogram of a `unit_id: {records: measured}` begins so.
UNITS = "units:"
#: The norm that a sensitivity is taken in.
Norm = Literal["l1", "l2"]

#: Counts and weights are whole multiples of 2**-WEIGHT_BITS records: sums are exact, noise lies on a lattice.
WEIGHT_BITS = 20
#: The largest scale of noise that is drawn, in those units: draws, answers and their sums fit 63 bits.
MAX_UNITS = 2.0**54
#: The largest scale of noise that is planned, in records; a plan with more is refused.
MAX_SCALE = 2.0**28
#: Texts of a unit id that mean that there is none.
NO_UNIT = ("", "nan", "NaN", "NA", "N/A", "NULL", "null", "None", "<NA>", "NaT")
#: What stands in the place of a fact that noise is to find out.
WORD = "discover"
#: What becomes of records beyond C, and of records without an id.
Clip = Literal["weight", "truncate", "none"]
MissingUnit = Literal["drop", "own", "refuse"]
#: The largest C: the weights of one unit, in units of 2**-WEIGHT_BITS records, stay exact in 63 bits.
MAX_RECORDS = 2**32
#: The largest C that may be discovered, and the largest expected number of tries.
MOST_CAP, MOST_TRIES = 2**20, 1000
#: By so much the computation of a bound may round: more digits say nothing.
ROUNDING = 1e-9
#: The smallest δ above 0: so far the conversions are tested against 80 digits.
MIN_DELTA = 1e-30
#: The largest δ: nearer to 1 rounding is all that is left of ε, in other libraries too.
MOST_DELTA = 0.9
#: The largest ε: up to here rounding is far below δ, whichever accountant adds up.
MOST_EPSILON = 1e9


class Neighbouring(enum.StrEnum):
    """Which two tables the guarantee compares: one unit added or removed, or one unit's records replaced."""

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"


def epsilon(value: float, *, where: str = "privacy.epsilon") -> Epsilon:
    """A checked ε: above 0, and no larger than accountants can tell from others."""
    if not 0 < value <= MOST_EPSILON:
        problem = f"got {value}, but ε must be above 0, and at most {MOST_EPSILON:g}"
        raise UserError(problem, where=where, fix=f"for example {where}=1")
    return Epsilon(float(value))


def delta(value: float, *, where: str = "privacy.delta") -> Delta:
    """A checked δ: 0, or in [MIN_DELTA, MOST_DELTA]."""
    if not 0 <= value <= MOST_DELTA:
        raise UserError(
            f"got {value}, but δ must lie in [0, {MOST_DELTA}]", where=where, fix=f"for example {where}=1e-9"
        )
    if 0 < value < MIN_DELTA:
        fix = f"{where}=1e-12, or 0 with privacy.accountant=basic mechanism=laplace"
        raise UserError(f"got {value}, below the smallest δ that conversions are tested for", where=where, fix=fix)
    return Delta(float(value))


def round_up(value: float) -> float:
    """The next float above: for noise scales, sensitivities and losses."""
    return math.nextafter(value, math.inf)


def round_down(value: float) -> float:
    """The next float below: for budgets and shares."""
    return math.nextafter(value, -math.inf)


def rounded_up(value: float, digits: int) -> str:
    """A bound in so many digits, never below it but by the rounding of its own computation."""
    return _in_digits(value * (1 - ROUNDING), digits, ROUND_CEILING)


def rounded_down(value: float, digits: int) -> str:
    """The same of what is at least so much: never above it."""
    return _in_digits(value * (1 + ROUNDING), digits, ROUND_FLOOR)


def _in_digits(value: float, digits: int, rounding: str) -> str:
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))):.{digits}g}"


def plain_digits(value: float) -> str:
    """A number without an exponent: whole from 100 on, three digits below."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def bound_in_words(epsilon: float, delta: float) -> str:
    """An (ε, δ) that holds, in words that claim no less."""
    return f"ε = {rounded_up(epsilon, 6)}, δ = {rounded_up(delta, 3)}"


def check_scale(scale: float, maximum: float = MAX_SCALE) -> None:
    """Refuse noise that has no place in the range of answers (or in its maximum, in records).

    Raises:
        UserError: a scale of 0 or less, above the maximum (in records), or no number.
    """
    if not 0 < scale <= maximum:
        fix = "a larger privacy.epsilon, a smaller privacy.max_records, or fewer marginals"
        problem = f"noise scale {scale:.3g} exceeds the supported maximum {maximum:.3g} records"
        raise UserError(problem, where="privacy.epsilon", fix=fix)


def joint_sensitivity(each: float, count: int, norm: Norm) -> float:
    """How far `count` answers move together if each moves by at most `each`: m · Δ in L1, √m · Δ in L2, rounded up."""
    return each * count if norm == "l1" else round_up(each * round_up(math.sqrt(count)))


#: Rule → what two ids of one unit may differ in, in words.
ID_RULES = {
    "unicode": "how Unicode writes a character (NFKC: composed, full-width, ligatures), and invisible characters",
    "trim": "white space around it",
    "case": "upper and lower case (full case folding: ß is ss)",
    "number": "leading zeros, a plus sign, trailing zeros and an exponent of a decimal number",
}
