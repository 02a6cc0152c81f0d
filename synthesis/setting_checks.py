"""Checks of a synthesizer's settings: numbers in their range, words among those that are known."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mechanisms.public.errors import UserError, one_of

#: What may stand in a setting, in words.
AT_LEAST_ONE = "a whole number of at least 1"
AT_LEAST_NONE = "a whole number of at least 0"
NOT_NEGATIVE = "a number of at least 0"
BELOW_ONE = "a number in [0, 1)"


def check_numbers(settings: object, *checks: tuple[str, bool, str]) -> None:
    """Each check: a field's name, whether its value fits, and what fits in words.

    Raises:
        UserError: a value that does not fit.
    """
    for name, fits, allowed in checks:
        if not fits:
            raise UserError(f"got {getattr(settings, name)}", where=f"synthesis.{name}", fix=allowed)


def check_words(settings: object, choices: Mapping[str, Collection[str]]) -> None:
    """Field → the words that it may hold.

    Raises:
        UserError: another word.
    """
    for name, allowed in choices.items():
        one_of(getattr(settings, name), allowed, f"synthesis.{name}")
