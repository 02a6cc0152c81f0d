"""Counts and ranges from noisy answers alone: unbiased, each with its exact standard error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.marginals import Values
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.consistency.least_squares import least_weights
from synthesis.consistency.residual_parts import Rebuilt, rebuilt_of

#: Cells of a marginal that are asked of answers that are no whole marginal, one by one.
MAX_SOLVED = 2_000


@dataclass(frozen=True, eq=False)
class CountEstimate:
    """Estimates of linear counts.

    Attributes:
        values: in records; unbiased, may be negative.
        errors: the standard error of each.
        sources: the measured marginals that they come from.
    """

    values: Values
    errors: Values
    sources: tuple[Clique, ...]


def estimate_marginal(measurements: Measurements, clique: Clique) -> CountEstimate:
    """A marginal from every measured one that contains it, weighted by precision.

    Guarantee: post-processing; costs no privacy.

    Raises:
        UserError: no measured marginal contains it, or too many cells to solve for.
    """
    return _combined(measurements, clique, None)


def estimate_count(measurements: Measurements, weights: dict[str, Values]) -> CountEstimate:
    """How many records there are where each attribute's codes count as their weights say (1 inside, 0 outside).

    Raises:
        UserError: no measured marginal contains the attributes.
    """
    clique = measurements.domain.canonical(tuple(weights))
    product = np.ones(())
    for name in clique:
        product = np.multiply.outer(product, weights[name])
    return _combined(measurements, clique, product)


def _combined(measurements: Measurements, clique: Clique, weights: Values | None) -> CountEstimate:
    if (rebuilt := rebuilt_of(measurements, clique)) is not None:
        return _of_parts(rebuilt, weights)
    having = [a for a in measurements.answers if set(clique) <= set(a.clique)]
    estimates = [(a.clique, _told(measurements.domain, a, clique, weights)) for a in having]
    usable = [(c, t) for c, t in estimates if t is not None]
    if not usable:
        whole = {a.clique for a in measurements.answers if isinstance(a.query, Identity)}
        every = dict.fromkeys(a.clique for a in measurements.answers)
        near = [
            " × ".join(c) + ("" if c in whole else " over coarser values")
            for c in [c for c in every if set(clique) & set(c)] or every
        ]
        fix = (
            f"ask for what was measured ({'; '.join(near[:12])}{' …' if len(near) > 12 else ''}); what was not needs "
            f"another run, out of a budget of its own, with [{','.join(clique)}] in its list selection.marginals"
        )
        fix += "; or solution=maxent, which fills in what their parts leave open" if weights is None else ""
        raise UserError(f"no measured marginal tells {' × '.join(clique)}", where="marginal", fix=fix)
    precision = np.array([t[1] ** -2 for _, t in usable])
    values = (precision * np.array([t[0] for _, t in usable])).sum(axis=0) / precision.sum(axis=0)
    sources = tuple(dict.fromkeys(c for c, _ in usable))
    return CountEstimate(values, precision.sum(axis=0) ** -0.5, sources)


def _of_parts(rebuilt: Rebuilt, weights: Values | None) -> CountEstimate:
    """Cells, or their weighted sum, of a marginal from its parts."""
    if weights is None:
        return CountEstimate(rebuilt.values.ravel(), np.full(rebuilt.values.size, rebuilt.noise.error), rebuilt.sources)
    value, moved = float((rebuilt.values * weights).sum()), rebuilt.noise.times(weights.reshape(1, -1))
    return CountEstimate(np.array([value]), np.array([float(np.linalg.norm(moved))]), rebuilt.sources)


def _told(
    domain: Domain, answer: NoisyMarginal, clique: Clique, weights: Values | None
) -> tuple[Values, Values] | None:
    """What one answer says of the cells, or of the weighted count, with its standard error; None if nothing."""
    shape = domain.shape(answer.clique)
    others = tuple(i for i, n in enumerate(answer.clique) if n not in clique)
    if isinstance(answer.query, Identity):
        sums = answer.values.reshape(shape).sum(axis=others)
        cells = math.prod(shape[i] for i in others)
        if weights is None:
            return sums.ravel(), np.full(sums.size, answer.stddev * math.sqrt(cells))
        error = answer.stddev * math.sqrt(cells * float((weights**2).sum()))
        return (np.array([float((sums * weights).sum())]), np.array([error])) if error else None
    asked = [weights] if weights is not None else _cells(domain.shape(clique))
    solved = [_solved(answer, np.broadcast_to(np.expand_dims(w, others), shape).ravel()) for w in asked]
    if any(s is None for s in solved):
        return None
    values, errors = (np.array([s[i] for s in solved if s is not None]) for i in (0, 1))
    return values, errors


def _cells(shape: Sequence[int]) -> list[Values]:
    size = math.prod(shape)
    if size > MAX_SOLVED:
        fix = "a range: where={…}; or fewer columns"
        raise UserError(f"{size:,} cells of answers that are no whole marginal", where="marginal", fix=fix)
    return [row.reshape(shape) for row in np.eye(size)]


def _solved(answer: NoisyMarginal, goal: Values) -> tuple[float, float] | None:
    """The answers' weighted sum that adds up to the wanted cells, with its standard error; None where there is none."""
    weights = least_weights(answer.query, goal)
    if weights is None:
        return None
    return float(weights @ answer.values), answer.stddev * float(np.sqrt(weights @ weights))
