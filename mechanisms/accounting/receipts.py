"""From the receipts of a statement back to the events that were booked."""

from __future__ import annotations

from typing import Any

from mechanisms.accounting.events import NOISE_EVENTS, Event, Exponential, with_failure
from mechanisms.public.json_values import Json


def booked_event(receipt: Json) -> Event:
    """The event whose cost was booked: the slot's worst case where the receipt names one, else the numbers used.

    Args:
        receipt: an entry of `events` of privacy.json: id, mechanism, and sensitivity with scale, or epsilon.
    Raises:
        ValueError: no such mechanism, or numbers out of range.
        KeyError: a number is missing.
    """
    numbers = {**receipt, **(receipt.get("booked") or {})}
    name, kind = str(receipt["id"]), receipt["mechanism"]
    if kind == Exponential.kind:
        return Exponential(name, _number(numbers["epsilon"]))
    if kind not in NOISE_EVENTS:
        raise ValueError(f"no mechanism {kind!r}")
    event = NOISE_EVENTS[kind](name, _number(numbers["sensitivity"]), _number(numbers["scale"]))
    return with_failure(event, _number(numbers["failure"])) if numbers.get("failure") else event


def _number(value: Any) -> float:
    """A finite number above 0."""
    number = float(value)
    if isinstance(value, bool) or not 0 < number < float("inf"):
        raise ValueError(f"got {value!r} where a number above 0 stands")
    return number
