"""Fields of a declaration, checked, with errors that name them; `discover` says what a run finds out with noise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mechanisms.public.errors import UserError, choices_fix
from mechanisms.public.units import WORD

#: A declaration in a schema, field by field: as it is read, and as it is made.
Fields: TypeAlias = Mapping[str, Any]
FieldDict: TypeAlias = dict[str, Any]


def check_fields(
    given: Iterable[object], allowed: Iterable[str], rule: str, where: str, *, label: str = "known fields:"
) -> None:
    """UserError where a field is not among those allowed.

    Args:
        rule: what declares them, as messages begin; empty where `where` says it.
        label: how the list of those allowed begins.
    """
    allowed = tuple(allowed)
    for name in map(str, given):
        if name not in allowed:
            problem = f"{rule}: unknown field {name!r}".removeprefix(": ")
            raise UserError(problem, where=where, fix=choices_fix(name, allowed, label))


def as_text(value: object, field: str, where: str) -> str:
    """A scalar as the text that the table holds."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float) and "\0" not in str(value):
        return str(value)
    raise UserError(f"{field}: got {value!r}", where=where, fix='a text; write "" for the empty text')


def text_list(value: object, field: str, where: str) -> tuple[str, ...]:
    """A list of distinct texts, with at least one."""
    if not isinstance(value, list | tuple) or not value:
        raise UserError(f"{field}: got {value!r}", where=where, fix=f"a list of texts: {field}: [a, b]")
    return tuple(as_text(v, field, where) for v in value)


def whole_number(value: object, field: str, where: str, *, low: int, high: int) -> int:
    """A whole number between two bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UserError(f"{field}: got {value!r}", where=where, fix=f"a whole number from {low} to {high:,}")
    return value


def true_or_false(value: object, field: str, where: str) -> bool:
    """True or false, nothing that only looks so."""
    if not isinstance(value, bool):
        raise UserError(f"{field}: got {value!r}", where=where, fix="true or false")
    return value


def texts_in(value: object, *, keys: bool = False) -> list[str]:
    """All texts in lists and in the values of mappings; in their keys too where asked for."""
    if isinstance(value, Mapping):
        value = [*value, *value.values()] if keys else [*value.values()]
    if isinstance(value, list | tuple):
        return [text for part in value for text in texts_in(part, keys=keys)]
    return [value] if isinstance(value, str) else []


WHAT = ("bounds", "bins", "values")
#: The public ranges of kinds whose declaration names none.
WITHIN: dict[str, tuple[object, object]] = {
    "integer": (-(10**9), 10**9),
    "float": (-1e9, 1e9),
    "date": ("1900-01-01", "2100-12-31"),
    "datetime": ("1900-01-01", "2100-12-31"),
}
#: Bins of equal mass, where their number is not given; and the most that are asked for.
BINS, MAX_BINS = 20, 1000
#: Codes that a plan assumes where their number is not known yet: bins between bounds, and values.
ASSUMED_BINS, ASSUMED_VALUES = 100, 20
#: Where values are discovered and no label is given for the rest.
OTHER = "other"
#: Fields that speak of the codes of a column.
OF_CODES = ("hierarchy", "distances", "coordinates", "geojson")


@dataclass(frozen=True)
class Discover:
    """What of a column is found out.

    Attributes:
        what: bounds, bins or both; or values.
        bins: so many bins of equal mass at most, where bins are found out; else 0.
        declared: the fields as they were written, in the place of which the assumed ones stand until then.
    """

    what: tuple[str, ...]
    bins: int = 0
    declared: Fields = field(default_factory=dict, hash=False)

    @property
    def bounds(self) -> bool:
        return "bounds" in self.what

    @property
    def values(self) -> bool:
        return "values" in self.what


def parse_discover(kind: str, given: FieldDict, where: str) -> tuple[FieldDict, Discover | None]:
    """The declaration with assumed facts in the place of those to be discovered, and what these are.

    Raises:
        UserError: a field that needs facts which nobody knows yet, or that says them.
    """
    bins = given.get("bins")
    count = BINS if _is_word(bins) else bins.get(WORD) if isinstance(bins, Mapping) and set(bins) == {WORD} else None
    if not _is_word(given.get("bounds", WORD)):
        raise UserError(f"bounds: got {given['bounds']!r}", where=where, fix=f"bounds: {WORD}; or min and max")
    facts = (("bounds",) if "bounds" in given else ()) + (() if count is None else ("bins",))
    if _is_word(given.get("values")):
        facts = ("values",)
    if not facts:
        if "within" in given:
            raise UserError("within: without bounds: discover", where=where, fix="min and max; or bounds: discover")
        return given, None
    _check_fields(given, facts, where)
    if facts == ("values",):
        return _assumed_values(given, where), Discover(facts, declared={"values": WORD})
    fewest = 0 if count is None else whole_number(count, "bins: discover", where, low=2, high=MAX_BINS)
    declared: FieldDict = {k: given[k] for k in ("bounds", "within", "bins") if k in given}
    assumed = {k: v for k, v in given.items() if k not in declared}
    if "bounds" in facts:
        assumed["min"], assumed["max"] = _within(kind, given, where)
    if count is not None:
        assumed["bins"] = {"count": _few(assumed, fewest)}
    elif bins is not None:
        assumed["bins"] = {"count": ASSUMED_BINS} if "calendar" in _mapping(bins) else bins
    elif kind == "integer":
        assumed["bins"] = {"count": _few(assumed, ASSUMED_BINS)}
    return assumed, Discover(facts, fewest, declared)


def _is_word(value: object) -> bool:
    return isinstance(value, str) and value == WORD


def parse_discovered(given: object, where: str) -> tuple[str, ...]:
    """`discovered: [bounds, bins]`: what of a column's declaration stems from noisy answers.

    Raises:
        UserError: another word.
    """
    if given is None:
        return ()
    words = text_list(given, "discovered", where)
    if not set(words) <= set(WHAT):
        raise UserError(f"discovered: got {given!r}", where=where, fix=f"a list of {', '.join(WHAT)}")
    return words


def discover_fields(fields: Fields, discover: Discover) -> FieldDict:
    """A column's declaration as it was written, from that of the column as it is assumed."""
    assumed = {"values"} if discover.values else {"min", "max", "bins"} if discover.bounds else {"bins"}
    declared = {k: v for k, v in fields.items() if k not in assumed}
    return {"kind": declared.pop("kind"), **discover.declared, **declared}


def check_rules(rules: Fields, columns: Sequence[str], where: str) -> None:
    """Refuse rules of the schema that name a column whose codes nobody knows yet.

    Raises:
        UserError: names the rule and the column.
    """
    for rule, content in rules.items():
        for name in columns:
            if any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for text in texts_in(content, keys=True)):
                problem = f"{rule}: names {name!r}, of which something is to be discovered"
                raise UserError(problem, where=where, fix="declare the column, or leave it out of the rule")


def _check_fields(given: Fields, facts: tuple[str, ...], where: str) -> None:
    """Refuse fields that speak of codes which nobody knows yet, or that say what is to be discovered."""
    joint, others = _mapping(given.get("joint_bins")), [f for f in OF_CODES if given.get(f) is not None]
    if facts == ("values",):
        others += [f for f in ("size", "ordinal", "joint_bins", "spellings", "prefix") if given.get(f)]
        if given.get("outside", "other") != "other":
            fix = "outside: other, or leave it out: values that are not discovered go there"
            raise UserError(f"outside: {given['outside']} with values: {WORD}", where=where, fix=fix)
    elif joint and set(joint) != {"count"}:
        others.append("joint_bins")
    if "bounds" in facts:
        others += [f for f in ("min", "max") if f in given]
        others += ["bins: edges"] if "edges" in _mapping(given.get("bins")) else []
    if given.get("discovered") is not None:
        others.append("discovered")
    if others:
        fix = "leave it out; or declare what the column holds"
        raise UserError(f"{others[0]} beside {facts[0]}: {WORD}, which nobody knows yet", where=where, fix=fix)


def _mapping(value: object) -> Mapping[Any, Any]:
    return {"calendar": value} if isinstance(value, str) else value if isinstance(value, Mapping) else {}


def _assumed_values(given: Fields, where: str) -> FieldDict:
    missing = given.get("missing")
    taken = [str(v) for v in missing] if isinstance(missing, list | tuple) else []
    other = given.get("other", OTHER)
    if other in taken:
        raise UserError(f"other: {other!r} means missing", where=where, fix="other: Other")
    names = [f"value {i + 1}" for i in range(ASSUMED_VALUES)]
    return {**given, "other": other, "values": [n for n in names if n not in (other, *taken)]}


def _within(kind: str, given: Fields, where: str) -> tuple[object, object]:
    """The public range that bounds are looked for in."""
    within = given.get("within", list(WITHIN[kind]))
    if not isinstance(within, list | tuple) or len(within) != 2:
        raise UserError(
            f"within: got {within!r}", where=where, fix="two bounds, known without a look: within: [0, 1000]"
        )
    return within[0], within[1]


def _few(assumed: Fields, count: int) -> int:
    """So many bins, or as many as there are whole numbers between the bounds."""
    low, high = assumed.get("min"), assumed.get("max")
    whole = assumed["kind"] == "integer" and all(isinstance(b, int) and not isinstance(b, bool) for b in (low, high))
    return max(min(count, high - low + 1), 1) if whole else count  # type: ignore[operator]  # both are whole
