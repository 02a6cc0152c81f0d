"""Expressions over columns of numbers and dates: parsed, checked against a list of allowed words, never executed."""

from __future__ import annotations

import ast
import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Floats
from mechanisms.public.errors import UserError, choices_fix, did_you_mean
from mechanisms.public.schema.bins import DAY
from mechanisms.public.schema.column import DATE_KINDS

Type = Literal["number", "date", "datetime", "truth"]
Values = Mapping[str, Floats]


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


def arithmetic(operator: str, left: Type, right: Type) -> tuple[Type, Callable[[Any, Any], Any]] | None:
    """The type of a result and how it is computed; None where the operation has no meaning."""
    if left == right == "number":
        plain = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
        return "number", plain[operator]
    if left in DATE_KINDS and right in DATE_KINDS and operator == "-":
        return "number", lambda a, b: (seconds(left, a) - seconds(right, b)) / DAY
    if left in DATE_KINDS and right == "number" and operator in "+-":
        unit, sign = (1 if left == "date" else DAY), (1 if operator == "+" else -1)
        return left, lambda a, b: a + sign * unit * np.asarray(b)
    if left == "number" and right in DATE_KINDS and operator == "+":
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


def _rounded(values: Any, digits: Any = 0.0) -> Any:
    """To the nearest, halves up."""
    scale = 10.0 ** np.clip(np.round(digits), -12, 12)
    return np.floor(np.asarray(values) * scale + 0.5) / scale


FUNCTIONS: Mapping[str, Function] = {
    "days": Function("moments", 2, 2, lambda a, b: np.floor(b / DAY) - np.floor(a / DAY), "days(first, last)"),
    "hours": Function("moments", 2, 2, lambda a, b: (b - a) / 3600, "hours(first, last)"),
    "months": Function("moments", 2, 2, months_between, "months(first, last)"),
    "years": Function("moments", 2, 2, lambda a, b: np.floor(months_between(a, b) / 12), "years(first, last)"),
    "year": Function("moments", 1, 1, lambda a: np.floor(_months(a) / 12) + 1970, "year(date)"),
    "month": Function("moments", 1, 1, lambda a: np.mod(_months(a), 12) + 1, "month(date)"),
    "day": Function("moments", 1, 1, lambda a: np.floor(_in_month(a) / DAY) + 1, "day(date)"),
    "hour": Function("moments", 1, 1, lambda a: np.floor(np.mod(a, DAY) / 3600), "hour(time)"),
    "min": Function("alike", 2, 20, lambda *each: reduce(np.minimum, each), "min(a, b, …), all of one kind"),
    "max": Function("alike", 2, 20, lambda *each: reduce(np.maximum, each), "max(a, b, …), all of one kind"),
    "round": Function("numbers", 1, 2, _rounded, "round(number) or round(number, decimals)"),
    "floor": Function("numbers", 1, 1, np.floor, "floor(number)"),
    "ceil": Function("numbers", 1, 1, np.ceil, "ceil(number)"),
    "abs": Function("numbers", 1, 1, np.abs, "abs(number)"),
}

#: Comparisons by their class in Python's syntax.
COMPARE: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
#: Longer texts, and constants beyond that, are refused; to divide by less than its inverse is to divide by 0.
MAX_LENGTH, MAX_CONSTANT = 500, 1e15
WORDS = (
    f"column names (`in such marks` where they are no words), numbers, 'dates', + - * / ( ), < <= > >= == !=, "
    f"and or not, A if TEST else B, {', '.join(f'{name}()' for name in FUNCTIONS)}"
)
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


@dataclass(frozen=True, eq=False)
class Expression:
    """A checked expression.

    Attributes:
        text: as it was written.
        sources: the columns that it reads, each once, in the order of their first use.
        type: of its values.
        divides: whether some numbers have no result.
    """

    text: str
    sources: tuple[str, ...]
    type: Type
    divides: bool
    _evaluate: Callable[[Values], Any]

    def values(self, sources: Values) -> Floats:
        """One number per row: days or seconds from 1970-01-01 for dates and times; NaN where there is no result.

        Args:
            sources: column → values in the column's unit, NaN where missing: then the result is missing too.
        """
        rows = {name: np.asarray(sources[name], np.float64) for name in self.sources}
        with np.errstate(all="ignore"):
            result = np.array(self._evaluate(rows), np.float64)
        for values in rows.values():
            result[np.isnan(values)] = np.nan
        result[np.isinf(result)] = np.nan
        return result


class _Part(NamedTuple):
    """A checked part of an expression: its type, and how it is computed."""

    type: Type
    evaluate: Callable[[Values], Any]


def parse_expression(text: object, types: Mapping[str, Type], where: str) -> Expression:
    """An expression over columns.

    Args:
        types: column → number, date or datetime; columns of other kinds are not in it.
    Raises:
        UserError: what is not allowed, with its position and the allowed words.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_LENGTH:
        fix = 'expression: "days(admitted, discharged)"'
        raise UserError(f"expression: got {text!r}"[:200], where=where, fix=fix)
    named: dict[str, str] = {}  # of which a name may hold ends of lines
    plain = re.sub(r"[\r\n\t\f]", " ", re.sub(r"`([^`]+)`", lambda m: _stand_in(m, named), text))
    start = len(plain) - len(plain.lstrip())
    try:
        tree = ast.parse(plain.lstrip(), mode="eval")
    except SyntaxError as error:
        place = start + (error.offset or 1)
        raise UserError(f"expression: cannot be read at position {place}", where=where, fix=WORDS) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UserError("expression: cannot be read", where=where, fix=WORDS) from error
    reader = _Reader(plain, start, named, types, where)
    part = reader.read(tree.body)
    if part.type == "truth":
        raise reader.wrong(tree.body, "a test, not a value", "A if TEST else B")
    if not reader.sources:
        raise UserError("expression: it names no column", where=where, fix=f"one of {', '.join(types)}")
    return Expression(text, tuple(reader.sources), part.type, reader.divides, part.evaluate)


def _stand_in(match: re.Match[str], named: dict[str, str]) -> str:
    """A word as long as the marked name, so that positions stay."""
    width, place = len(match[0]), 0
    while True:
        word = f"_{place}".ljust(width, "_")
        if named.setdefault(word, match[1]) == match[1]:
            return word
        place += 1


class _Reader:
    """Checks nodes one by one; what has no method here is not allowed."""

    def __init__(self, text: str, start: int, named: Mapping[str, str], types: Mapping[str, Type], where: str) -> None:
        self.text, self.start, self.named, self.types, self.where = text, start, named, types, where
        self.sources: dict[str, None] = {}
        self.divides = False

    def wrong(self, node: ast.AST, fault: str, fix: str = WORDS) -> UserError:
        """What is wrong with a node, and at which position of the whole text."""
        offset = getattr(node, "col_offset", 0)
        before = self.text.lstrip().encode()[:offset].decode(errors="ignore")
        return UserError(f"expression: at position {self.start + len(before) + 1}: {fault}", where=self.where, fix=fix)

    def read(self, node: ast.expr) -> _Part:
        """The part that a node stands for, by its class."""
        readers: dict[type, Callable[[Any], _Part]] = {
            ast.Constant: self.constant,
            ast.Name: self.name,
            ast.UnaryOp: self.unary,
            ast.BinOp: self.binary,
            ast.BoolOp: self.both,
            ast.Compare: self.compare,
            ast.IfExp: self.choice,
            ast.Call: self.call,
        }
        if type(node) not in readers:
            raise self.wrong(node, "this is not allowed")
        return readers[type(node)](node)

    def constant(self, node: ast.Constant) -> _Part:
        """A number, or a day or time in quotes."""
        value = node.value
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_CONSTANT:
            number = float(value)
            return _Part("number", lambda _: number)
        if isinstance(value, str) and (moment := _moment(value)) is not None:
            kind, at = moment
            return _Part(kind, lambda _: at)
        fix = "a number, or a day such as '2024-01-31'"
        raise self.wrong(node, f"got {value!r}"[:80], fix)

    def name(self, node: ast.Name) -> _Part:
        """A column; it is one of the sources from now on."""
        column = self.named.get(node.id, node.id)
        if column not in self.types:
            fix = choices_fix(column, self.types, "columns of numbers or dates:")
            raise self.wrong(node, f"{column!r} is no column of numbers or dates", fix)
        self.sources[column] = None
        return _Part(self.types[column], lambda values: values[column])

    def unary(self, node: ast.UnaryOp) -> _Part:
        """not, + and -."""
        part = self.read(node.operand)
        if isinstance(node.op, ast.Not):
            self.must_be(node.operand, part, "truth")
            return _Part("truth", lambda values: np.logical_not(part.evaluate(values)))
        if not isinstance(node.op, ast.USub | ast.UAdd):
            raise self.wrong(node, "this operator is not allowed")
        self.must_be(node.operand, part, "number")
        sign = -1.0 if isinstance(node.op, ast.USub) else 1.0
        return _Part("number", lambda values: sign * part.evaluate(values))

    def binary(self, node: ast.BinOp) -> _Part:
        """Plus, minus, times and divided by, as far as the two types have a meaning together."""
        operator = OPERATORS.get(type(node.op))
        if operator is None:
            raise self.wrong(node, "this operator is not allowed")
        left, right = self.read(node.left), self.read(node.right)
        result = arithmetic(operator, left.type, right.type)
        if result is None:
            problem = f"{left.type} {operator} {right.type} has no meaning"
            raise self.wrong(node, problem, "numbers; a date - a date (in days); a date + or - a number of days")
        self.divides |= operator == "/" and abs(getattr(node.right, "value", 0)) < 1 / MAX_CONSTANT
        kind, compute = result
        return _Part(kind, lambda values: compute(left.evaluate(values), right.evaluate(values)))

    def both(self, node: ast.BoolOp) -> _Part:
        """and, or."""
        parts = [self.read(v) for v in node.values]
        for value, part in zip(node.values, parts, strict=True):
            self.must_be(value, part, "truth")
        join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        return _Part("truth", lambda values: reduce(join, [p.evaluate(values) for p in parts]))

    def compare(self, node: ast.Compare) -> _Part:
        """One comparison or a chain of them, of parts of one type."""
        nodes = [node.left, *node.comparators]
        parts = self.alike(nodes)
        tests = [COMPARE[type(op)] for op in node.ops if type(op) in COMPARE]
        if len(tests) < len(node.ops) or parts[0].type == "truth":
            raise self.wrong(node, "this comparison is not allowed")

        def evaluate(values: Values) -> Any:
            sides = [p.evaluate(values) for p in parts]
            return reduce(np.logical_and, [t(a, b) for t, a, b in zip(tests, sides, sides[1:], strict=False)])

        return _Part("truth", evaluate)

    def choice(self, node: ast.IfExp) -> _Part:
        """one if test else other."""
        test = self.read(node.test)
        self.must_be(node.test, test, "truth")
        one, other = self.alike([node.body, node.orelse])
        return _Part(
            one.type, lambda values: np.where(test.evaluate(values), one.evaluate(values), other.evaluate(values))
        )

    def call(self, node: ast.Call) -> _Part:
        """One of the functions that are allowed."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS or node.keywords:
            near = did_you_mean(name, FUNCTIONS)
            fix = f"{near} functions: {', '.join(f'{f}()' for f in FUNCTIONS)}".strip()
            raise self.wrong(node, f"{name or 'this'}: no such function", fix)
        function = FUNCTIONS[name]
        if not function.fewest <= len(node.args) <= function.most:
            raise self.wrong(node, f"{name}: got {len(node.args)} arguments", function.usage)
        if function.of == "moments":
            parts = [self.moment(arg, name) for arg in node.args]
            return _Part("number", lambda values: function.compute(*(p.evaluate(values) for p in parts)))
        parts = self.alike(node.args) if function.of == "alike" else [self.read(a) for a in node.args]
        if parts[0].type == "truth" or (function.of == "numbers" and any(p.type != "number" for p in parts)):
            raise self.wrong(node, f"{name}: got {', '.join(p.type for p in parts)}", function.usage)
        return _Part(parts[0].type, lambda values: function.compute(*(p.evaluate(values) for p in parts)))

    def moment(self, node: ast.expr, function: str) -> _Part:
        """A date or time, in seconds."""
        part = self.read(node)
        if part.type not in {"date", "datetime"}:
            raise self.wrong(node, f"{function}: got a {part.type}", "a column of dates, or a day such as '2024-01-31'")
        return _as_moments(part)

    def alike(self, nodes: list[ast.expr]) -> list[_Part]:
        """Parts of one type; a date beside times counts as its midnight."""
        parts = [self.read(n) for n in nodes]
        types = {p.type for p in parts}
        if types == {"date", "datetime"}:
            return [_as_moments(part) for part in parts]
        for node, part in zip(nodes, parts, strict=True):
            self.must_be(node, part, parts[0].type)
        return parts

    def must_be(self, node: ast.expr, part: _Part, kind: Type) -> None:
        """Raises UserError where the part is of another type."""
        if part.type != kind:
            named = {"truth": "test"}
            problem = f"a {named.get(part.type, part.type)} where a {named.get(kind, kind)} belongs"
            raise self.wrong(node, problem, "both sides of one kind; tests are made by < <= > >= == != and or not")


def _moment(text: str) -> tuple[Type, float] | None:
    """A day, or a time, in its unit from 1970-01-01; None for any other text."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return None
    at = (moment - datetime.datetime(1970, 1, 1)).total_seconds()
    return ("date", at // 86_400) if len(text) == 10 else ("datetime", at)


def _as_moments(part: _Part) -> _Part:
    """Dates or times, in seconds."""
    return _Part("datetime", lambda values: seconds(part.type, part.evaluate(values)))
