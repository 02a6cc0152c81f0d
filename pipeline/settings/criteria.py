"""Settings → what decides whether a release is accepted, and how many tries it may take."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, cast, get_args

from mechanisms.accounting.private_selection import PrivateSelection
from mechanisms.public.criterion import Criterion, Over
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError, choices_fix
from pipeline.settings.config import Config

#: A marginal with more cells is not compared.
MOST_CELLS = 10_000_000
#: So many marginals are compared at most.
MOST_MARGINALS = 100_000
KEYS = ("metric", "marginals", "at_most", "of", "share")
EXAMPLE = "accept=[{metric: l1, marginals: 2, at_most: 500}]"


def build_criteria(config: Config, domain: Domain) -> tuple[Criterion, ...]:
    """The criteria of `accept`, checked against the measured columns; public facts alone.

    Raises:
        UserError: an unknown or missing key, a value out of range; names the setting.
    """
    each = config.accept_share / max(len(config.accept), 1)
    return tuple(_criterion(place, entry, domain, each) for place, entry in enumerate(config.accept))


def build_selection(config: Config) -> PrivateSelection:
    """How many tries there may be, and what ends them.

    Raises:
        UserError: several tries whose scores do not say which of them is released.
    """
    limits = [entry.get("at_most") is not None for entry in config.accept]
    if config.accept_tries > 1 and not all(limits) and len(limits) > 1:
        fix = "at_most in every entry (the first release within all of them wins), or one entry without (the best wins)"
        raise UserError("several tries cannot be ordered by several scores", where="accept", fix=fix)
    return PrivateSelection(config.accept_tries, all(limits))


def _criterion(place: int, entry: Mapping[str, Any], domain: Domain, share: float) -> Criterion:
    where = f"accept[{place}]"
    for key in entry:
        if key not in KEYS:
            raise UserError(f"no such key: {key!r}", where=where, fix=choices_fix(str(key), KEYS))
    if entry.get("metric") != "l1":
        got = f"got {entry['metric']!r}" if "metric" in entry else "no metric"
        raise UserError(got, where=f"{where}.metric", fix="l1: the L1 distance of marginals, in records")
    over = entry.get("of", "mean")
    if over not in get_args(Over):
        raise UserError(f"got {over!r}", where=f"{where}.of", fix=f"one of: {', '.join(get_args(Over))}")
    at_most = entry.get("at_most")
    if at_most is not None and not (_number(at_most) and at_most >= 0):
        fix = "a number of records of at least 0; null: the noisy distance is released, whatever it is"
        raise UserError(f"got {at_most!r}", where=f"{where}.at_most", fix=fix)
    part = entry.get("share", share)
    if not (_number(part) and 0.0001 <= part <= 0.9):
        raise UserError(f"got {part!r}", where=f"{where}.share", fix="a part of the budget, 0.0001 to 0.9")
    cliques, left_out = _marginals(entry.get("marginals"), domain, f"{where}.marginals")
    limit = None if at_most is None else float(at_most)
    order = len(cliques[0])
    return Criterion(place, order, cliques, left_out, cast(Over, over), limit, float(part))


def _marginals(order: object, domain: Domain, where: str) -> tuple[tuple[Clique, ...], int]:
    """All k-way marginals that are small enough, and how many are not."""
    if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= len(domain):
        fix = f"a whole number from 1 to {len(domain)}, the measured columns: {EXAMPLE}"
        raise UserError(f"got {order!r}" if order is not None else "not set", where=where, fix=fix)
    count = math.comb(len(domain), order)
    if count > MOST_MARGINALS:
        fix = f"fewer columns per marginal (at most {MOST_MARGINALS:,} marginals are compared)"
        raise UserError(f"{count:,} marginals", where=where, fix=fix)
    every = list(itertools.combinations(domain.names, order))
    small = tuple(c for c in every if domain.cells(c) <= MOST_CELLS)
    if not small:
        fix = "fewer columns per marginal, or coarser bins in the schema"
        raise UserError(f"every marginal has more than {MOST_CELLS:,} cells", where=where, fix=fix)
    return small, len(every) - len(small)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
