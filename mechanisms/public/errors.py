"""The one exception for a user's mistake: what was wrong, where, what is allowed, how to mend it."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any

#: How a text of another encoding is mended.
AS_UTF8 = "save the file as UTF-8; of one that Windows wrote: iconv -f cp1252 -t utf-8 FILE > NEW"


class UserError(Exception):
    """A mistake that the user can mend; the command line shows it without a traceback and exits with 1.

    Args:
        what: what was wrong, in one sentence, with no value of any private row in it.
        where: the setting, column or file concerned.
        fix: what is allowed, and the way out.
    """

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        self.what, self.where, self.fix = what, where, fix
        lines = [what if where is None else f"{where}: {what}"]
        if fix:
            lines.append(f"  fix: {fix}")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        return (partial(UserError, where=self.where, fix=self.fix), (self.what,))


def together(errors: Sequence[UserError], most: int = 8) -> UserError:
    """The first mistake, with the others of the same file behind it, so that all can be mended at once."""
    first, *others = errors
    more = [f"and {len(others) + 1 - most:,} more"] if len(others) >= most else []
    ways = [first.fix or "", *(f"and {error}" for error in others[: most - 1]), *more]
    return UserError(first.what, where=first.where, fix="\n".join(ways))


def shown(text: str, *, but: str = "") -> str:
    """A text on a terminal, which it neither clears nor writes lines of: unseen characters stand as their codes.

    Args:
        but: characters that stay as they are.
    """
    return "".join(c if c.isprintable() or c in but else ascii(c)[1:-1] for c in text)


def first_few(texts: Iterable[str], most: int = 3) -> str:
    """The first texts, and how many more there are."""
    every = list(texts)
    return ", ".join(every[:most]) + (f" and {len(every) - most:,} more" if len(every) > most else "")


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the known words that end so behind a dot, else the closest; or an empty text."""
    every = [str(k) for k in names]
    ending = [k for k in every if k.endswith(f".{word}")]
    close = ending if 0 < len(ending) <= 3 else difflib.get_close_matches(word, every, n=1, cutoff=0.6)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""


def check_names(given: Iterable[object], allowed: Collection[Any], what: str, *, where: str, fix: str = "") -> None:
    """All of these are known.

    Args:
        what: how messages begin, such as `no preset`.
        fix: the way out where none of the known ones is near; empty: one of them.
    Raises:
        UserError: names the first that is not, with the nearest known one.
    """
    for name in given:
        if name not in allowed:
            near = did_you_mean(str(name), allowed) or fix or f"one of {', '.join(map(str, allowed))}"
            raise UserError(f"{what} {name!r}", where=where, fix=near)


def require_columns(
    names: Iterable[Any], allowed: Collection[str], *, where: str, of: str = " in the schema", have: str = "one of"
) -> None:
    """All of the columns are known.

    Args:
        of: in what, for messages; `have`: what stands before the list of the known ones.
    Raises:
        UserError: names all that are not, each with the nearest known one.
    """
    wrong = [n for n in dict.fromkeys(map(str, names)) if n not in allowed]
    if not wrong:
        return
    near = {n: did_you_mean(n, allowed) for n in wrong}
    every, several = f"{have} {', '.join([*allowed][:40])}", len(wrong) > 1
    fix = "; ".join([f"{n}: {m}" for n, m in near.items() if m] + [every]) if several else near[wrong[0]] or every
    raise UserError(f"no column{'s' * several} {', '.join(map(repr, wrong))}{of}", where=where, fix=fix)


def check_head(names: Sequence[str], expected: Collection[str], *, where: str, look: str, once: str = "") -> None:
    """The names of a table's columns are names, each of them there once.

    Args:
        expected: columns, two of which, or half, are among the names: else it may be a record, which is not quoted.
        look: how both are shown; `once`: the way out where a name is there twice.
    Raises:
        UserError: they are not.
    """
    if (both := len({*names} & {*expected})) < 2 and 2 * both < min(len(names), len(expected)):
        problem = "few or none of the names in its head are columns of the schema: has it a header?"
        fix = f"a header with the names of the schema, or a schema with those of the table; {look} shows both"
        raise UserError(problem, where=where, fix=fix)
    if twice := ", ".join(repr(n) for n, count in sorted(Counter(names).items()) if count > 1):
        empty = "delete empty columns, as spreadsheets leave them behind the last one, or " * ("''" in twice)
        fix = once or f"{empty}give each column a name of its own"
        raise UserError(f"columns named twice in the header: {twice}", where=where, fix=fix)


def choices_fix(word: str, allowed: Iterable[str], begin: str = "one of:") -> str:
    """The way out where a word is none of the allowed ones: the closest of them, and all of them behind `begin`."""
    words = [str(a) for a in allowed]
    return f"{did_you_mean(word, words)} {begin} {', '.join(words)}".strip()


def one_of(value: object, allowed: Collection[str], where: str, field: str = "") -> str:
    """The value, if it is allowed.

    Args:
        field: which one of what `where` names; absent, it is called so.
    Raises:
        UserError: it is not.
    """
    if not isinstance(value, str) or value not in allowed:
        got = "is absent" if field and value is None else f"got {value!r}"
        raise UserError(f"{field}: {got}".removeprefix(": "), where=where, fix=choices_fix(str(value), allowed))
    return value
