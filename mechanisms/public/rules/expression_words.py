"""The words of expressions: arithmetic of numbers and dates, and the functions that are allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DAY = 86_400
#: Dates are days, times are seconds, both from 1970-01-01.
MOMENTS = ("date", "datetime")


@dataclass(frozen=True)
class Function:
    """An allowed function.

    Attributes:
        of: numbers; moments (handed over in seconds); or alike: all of one type, which is that of the result.
        fewest, most: arguments.
        usage: how it is written, for messages.
    """

    of: Literal["numbers", "moments", "alike"]
    fewest: int
    most: int
    compute: Callable[..., Any]
    usage: str


def seconds(kind: str, values: Any) -> Any:
    """Dates or times in seconds."""
    return values * DAY if kind == "date" else values


def as_moment(kind: str, evaluate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What `evaluate` gives, in seconds."""
    return lambda values: seconds(kind, evaluate(values))


def arithmetic(operator: str, left: str, right: str) -> tuple[str, Callable[[Any, Any], Any]] | None:
    """The type of a result and how it is computed; None where the operation has no meaning."""
    if left == right == "number":
        plain = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
        return "number", plain[operator]
    if left in MOMENTS and right in MOMENTS and operator == "-":
        return "number", lambda a, b: (seconds(left, a) - seconds(right, b)) / DAY
    if left in MOMENTS and right == "number" and operator in "+-":
        unit, sign = (1 if left == "date" else DAY), (1 if operator == "+" else -1)
        return left, lambda a, b: a + sign * unit * np.asarray(b)
    if left == "number" and right in MOMENTS and operator == "+":
        unit = 1 if right == "date" else DAY
        return right, lambda a, b: b + unit * np.asarray(a)
    return None


def _stamps(values: Any) -> NDArray[Any]:
    """Seconds as datetime64, in the years 1 to 9999; what is missing counts as 1970 here, and is missing in the end."""
    whole = np.nan_to_num(np.floor(np.asarray(values, np.float64)))
    stamps = np.clip(whole, -62_135_596_800, 253_402_300_799).astype(np.int64)
    return np.asarray(stamps.astype("datetime64[s]"))


def _months(values: Any) -> Floats:
    return np.asarray(_stamps(values).astype("datetime64[M]").astype(np.int64), np.float64)


def _in_month(values: Any) -> Floats:
    """Seconds since the month began."""
    stamps = _stamps(values)
    return np.asarray((stamps - stamps.astype("datetime64[M]")).astype("timedelta64[s]"), np.float64)


def months_between(first: Any, last: Any) -> Floats:
    """Whole months from the one to the other, rounded towards −∞: a month is over on the same day of the next."""
    return np.asarray(_months(last) - _months(first) - (_in_month(last) < _in_month(first)))


def _year(values: Any) -> Floats:
    return np.asarray(np.floor(_months(values) / 12) + 1970)


def _rounded(values: Any, digits: Any = 0.0) -> Any:
    """To the nearest, halves up."""
    scale = 10.0 ** np.clip(np.round(digits), -12, 12)
    return np.floor(np.asarray(values) * scale + 0.5) / scale


def _least(*values: Any) -> Any:
    result = values[0]
    for value in values[1:]:
        result = np.minimum(result, value)
    return result


def _most(*values: Any) -> Any:
    result = values[0]
    for value in values[1:]:
        result = np.maximum(result, value)
    return result


FUNCTIONS: Mapping[str, Function] = {
    "days": Function("moments", 2, 2, lambda a, b: np.floor(b / DAY) - np.floor(a / DAY), "days(first, last)"),
    "hours": Function("moments", 2, 2, lambda a, b: (b - a) / 3600, "hours(first, last)"),
    "months": Function("moments", 2, 2, months_between, "months(first, last)"),
    "years": Function("moments", 2, 2, lambda a, b: np.floor(months_between(a, b) / 12), "years(first, last)"),
    "year": Function("moments", 1, 1, _year, "year(date)"),
    "month": Function("moments", 1, 1, lambda a: np.mod(_months(a), 12) + 1, "month(date)"),
    "day": Function("moments", 1, 1, lambda a: np.floor(_in_month(a) / DAY) + 1, "day(date)"),
    "hour": Function("moments", 1, 1, lambda a: np.floor(np.mod(a, DAY) / 3600), "hour(time)"),
    "min": Function("alike", 2, 20, _least, "min(a, b, …), all of one kind"),
    "max": Function("alike", 2, 20, _most, "max(a, b, …), all of one kind"),
    "round": Function("numbers", 1, 2, _rounded, "round(number) or round(number, decimals)"),
    "floor": Function("numbers", 1, 1, np.floor, "floor(number)"),
    "ceil": Function("numbers", 1, 1, np.ceil, "ceil(number)"),
    "abs": Function("numbers", 1, 1, np.abs, "abs(number)"),
}

COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "Lt": np.less,
    "LtE": np.less_equal,
    "Gt": np.greater,
    "GtE": np.greater_equal,
    "Eq": np.equal,
    "NotEq": np.not_equal,
}
