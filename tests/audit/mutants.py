"""Known faults of libraries for differential privacy, switched on one at a time: the audit must catch each."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from tests.audit.hooks import Switch, swapped

Make = Callable[..., Any]


@dataclass(frozen=True)
class Mutant:
    """A fault.

    Attributes:
        name: what the code does wrong.
        fault: where such a fault is known from, or how it comes about.
        parts: what is replaced (names in `hooks.POINTS`), each with how.
        likely: the check that should catch it, tried first; after it words: what of it is likely.
    """

    name: str
    fault: str
    parts: tuple[tuple[str, Make], ...]
    likely: str

    @contextmanager
    def on(self) -> Iterator[list[Switch]]:
        with ExitStack() as stack:
            yield [stack.enter_context(swapped(name, make)) for name, make in self.parts]


MUTANTS: dict[str, Mutant] = {}


def mutant_maker(likely: str, *points: str) -> Callable[[Make], Make]:
    """Registers a fault: a function of the original (or one original per point) that returns its faulty twin."""

    def register(make: Make) -> Make:
        name = make.__name__.replace("_", " ")
        fault = " ".join((make.__doc__ or "").split())
        MUTANTS[name] = Mutant(name, fault, tuple((p, make) for p in points), likely)
        return make

    return register


def mutant(likely: str, *points: str) -> Callable[[Make], Make]:
    """Registers a fault: the faulty twin itself, whose first argument is the original."""

    def register(twin: Make) -> Make:
        mutant_maker(likely, *points)(update_wrapper(lambda original: partial(twin, original), twin))
        return twin

    return register


def mutants(twin: Make, faults: str) -> None:
    """Registers faults that have one twin in several places.

    Args:
        faults: two lines each: `name | likely | point`, and the fault.
    """
    lines = iter(faults.strip().splitlines())
    for head, fault in zip(lines, lines, strict=True):
        name, likely, place = head.split(" | ")
        MUTANTS[name] = Mutant(name, fault, ((place, lambda original: partial(twin, original)),), likely)


class Words:
    """A source of noise whose words come from numpy's generator of an event."""

    def __init__(self, of: Callable[[str], np.random.Generator]) -> None:
        self.of = of

    def stream(self, event_id: str) -> Any:
        generator = self.of(event_id)
        return lambda size: generator.integers(0, 2**64, size=size, dtype=np.uint64)
