"""Settings: the values that a field may hold stand beside it, and one checker words what is wrong with another value.

Help and misspelt settings are answered from these fields: this module loads no large library.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

from mechanisms.public.errors import UserError, choices_fix
from mechanisms.public.files import is_number


def setting(default: Any, doc: str = "", **bounds: Any) -> Any:
    """A field of settings: a value.

    Args:
        doc: one line for `--help`; empty where a file of conf/ has it.
        bounds: what it may be, as attributes of `Setting` say it.
    """
    return _field(default, {"doc": doc, **bounds})


def column(doc: str) -> Any:
    """A field for the column that plays a role, such as the time: a name, or None; a ready table may declare it."""
    return _field(None, {"doc": doc, "role": True})


def columns(doc: str, *, example: str = "") -> Any:
    """A field for a list of columns; empty by default."""
    return _field([], {"doc": doc, "listed": True, "example": example})


def _field(default: Any, about: dict[str, Any]) -> Any:
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=about)
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Setting:
    """One declared setting, and what its value may be; of a list: what each of its values may be. Numbers are finite.

    Attributes:
        name: of the field.
        type: of its values.
        default: its value where nothing is set.
        doc: one line for `--help`; of a column's role also what is missing where a metric needs it.
        role: whether it names the column that plays a role.
        listed: whether it is a list of columns.
        least, most: the smallest and the largest number.
        above, below: numbers that it comes near to, but does not reach.
        choices: the words that it may be.
        parts: the names of the numbers of a list, which has one for each.
        distinct: whether no value stands twice in a list.
        filled: whether a list has a value at least.
        also: values that are allowed beside these, each with what it stands for; empty: the value says it.
        noun: how a message calls it, such as "a part of the budget".
        note: what a message says beside what is allowed.
        example: for the message about a value of another form.
    """

    name: str
    type: Any
    default: Any
    doc: str = ""
    role: bool = False
    listed: bool = False
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    choices: Collection[str] = ()
    parts: Collection[str] = ()
    distinct: bool = False
    filled: bool = False
    also: Mapping[Any, str] = field(default_factory=dict)
    noun: str = ""
    note: str = ""
    example: str = ""

    @property
    def kinds(self) -> frozenset[Any]:
        """The types of its values, of a list those of its parts."""
        return _kinds(self.type)[0]

    @property
    def several(self) -> bool:
        """Whether its values are lists."""
        return _kinds(self.type)[1]

    @property
    def bounded(self) -> bool:
        """Whether its numbers have a bound."""
        return any(b is not None for b in (self.least, self.most, self.above, self.below))

    def read(self, value: Any) -> Any:
        """The number that a text says, where the field holds numbers, and texts at most as `also`; else the value."""
        if isinstance(value, str) and value not in self.also and (self.bounded or str not in self.kinds):
            for kind in [k for k in (int, float) if k in self.kinds]:
                with suppress(ValueError):
                    return kind(value)
        return value

    def fits(self, value: Any) -> bool:
        """Whether the field may hold the value."""
        if not isinstance(value, list | tuple):
            return any(value == a for a in self.also) or (self._one(value) and (value is None or not self.several))
        if not self.several and Any not in self.kinds:
            return False
        if (self.parts and len(value) != len(self.parts)) or (self.filled and not value):
            return False
        once = {f"{v:g}" if isinstance(v, float) else v for v in value} if self.distinct else value
        return all(map(self._one, value)) and len(once) == len(value)

    def _one(self, value: Any) -> bool:
        if value is None:
            return type(None) in self.kinds or Any in self.kinds
        if self.choices:
            return value in self.choices
        reckoned = isinstance(value, float) or (self.bounded and type(value) is int)  # a seed may be any whole number
        if not self._of_type(value) or (reckoned and not is_number(value)):
            return False
        beyond = (
            self.least is not None and value < self.least,
            self.most is not None and value > self.most,
            self.above is not None and value <= self.above,
            self.below is not None and value >= self.below,
        )
        return not any(beyond)

    def _of_type(self, value: Any) -> bool:
        """Whether the value is of a plain type of the field; a field of another type is checked elsewhere."""
        plain = self.kinds & set(_PLAIN)
        if not self.bounded and (self.several or not plain or self.kinds - plain - {type(None)}):
            return True
        if isinstance(value, bool):
            return bool in plain
        return isinstance(value, tuple(_PLAIN[k][0] for k in plain if not (self.bounded and k is str)))

    def allowed(self, value: Any) -> str:
        """What it may be, in words, for somebody who gave another value."""
        if self.choices:
            given = value if isinstance(value, list | tuple) else [value]
            words = choices_fix(str(next((g for g in given if g not in self.choices), "")), self.choices)
        else:
            kind = next((word for k, (_, word) in _PLAIN.items() if k in self.kinds), "value")
            one = f"{len(self.parts) or ''} {kind}s".strip() if self.several else f"a {kind}"
            words = " ".join(w for w in (self.noun or one, self._range()) if w)
            words += f", for {', '.join(self.parts)}: [{','.join('1' for _ in self.parts)}]" if self.parts else ""
            words += ", each once" if self.distinct else ""
        words += "".join(f", or {a} {of}".rstrip() for a, of in self.also.items())
        words += ", or null" if type(None) in self.kinds else ""
        return f"{words}; {self.note}" if self.note else words

    def _range(self) -> str:
        least, most, above, below = (
            None if b is None else _figure(b) for b in (self.least, self.most, self.above, self.below)
        )
        if least and most:
            return f"from {least} to {most}"
        if above and below:
            return f"between {above} and {below}"
        low = f"of at least {least}" if least else f"above {above}" if above else ""
        high = f"at most {most}" if most else f"below {below}" if below else ""
        return f"{low}, {high}" if low and high else low or high


#: Plain types of values: what counts as one, and its name in a message.
_PLAIN: dict[Any, tuple[type, str]] = {
    float: (Real, "number"),
    int: (Integral, "whole number"),
    bool: (bool, "switch: true or false"),
    str: (str, "text"),
}


def _figure(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


@functools.cache
def _kinds(of: Any) -> tuple[frozenset[Any], bool]:
    """The types of single values, and whether values are lists of them."""
    union = typing.get_origin(of) in (typing.Union, types.UnionType)
    options = typing.get_args(of) if union else (of,)
    lists = [o for o in options if typing.get_origin(o) in (list, tuple)]
    parts = [part for each in lists for part in typing.get_args(each)]
    return frozenset({*parts, *(o for o in options if o not in lists)} - {...}), bool(lists)


def declared(kind: type[Any]) -> tuple[Setting, ...]:
    """The settings that a dataclass declares, in order."""
    settings: tuple[Setting, ...] = _declared(kind)  # type: ignore[arg-type]  # a class is hashable
    return settings


@functools.cache
def _declared(kind: Any) -> tuple[Setting, ...]:
    hints = typing.get_type_hints(kind)
    return tuple(Setting(f.name, hints[f.name], _default(f), **f.metadata) for f in dataclasses.fields(kind))


def _default(own: dataclasses.Field[Any]) -> Any:
    return own.default if own.default_factory is dataclasses.MISSING else own.default_factory()


class BoundedSettings:
    """What every class of settings is: a dataclass, of which none can be made with a value that a field may not hold.

    Raises:
        UserError: such a value; names the setting, the value, and what is allowed.
    """

    #: What stands before the name of each of its settings, such as privacy.
    settings_group: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for each in declared(type(self)):
            value = each.read(given := getattr(self, each.name))
            if value is not given:
                object.__setattr__(self, each.name, value)
            if not each.fits(value):
                where = f"{self.settings_group}.{each.name}".lstrip(".")
                raise UserError(f"got {value!r}", where=where, fix=each.allowed(value))
