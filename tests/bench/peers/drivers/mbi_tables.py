"""MST (McKenna, Miklau, Sheldon 2021) and AIM (McKenna, Mullins, Sheldon, Miklau 2022) on the library mbi 2.

The library has inference alone; both mechanisms are written here from their papers, with the papers' settings.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import jax
import numpy as np
from exchange import Request, read_codes, request, said, write_codes, zcdp

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)

import mbi  # noqa: E402

Clique = tuple[str, ...]
#: AIM: rounds per column at most, megabytes of the model, the share of each round that chooses, the workload's order.
ROUNDS, MODEL_MB, CHOOSING, ORDER = 16, 80, 0.1, 2


class Rows:
    """The private table: exact counts of marginals."""

    def __init__(self, columns: dict[str, np.ndarray], sizes: dict[str, int]) -> None:
        self.columns, self.sizes = columns, sizes

    def counts(self, clique: Clique) -> np.ndarray:
        shape = [self.sizes[c] for c in clique]
        cells = np.ravel_multi_index([self.columns[c] for c in clique], shape)
        return np.bincount(cells, minlength=math.prod(shape)).astype(float)

    def noisy(self, clique: Clique, sigma: float, rng: np.random.Generator) -> mbi.LinearMeasurement:
        exact = self.counts(clique)
        return mbi.LinearMeasurement(exact + rng.normal(0, sigma, exact.size), clique, sigma)

    def merged(self, mapping: dict[str, np.ndarray]) -> Rows:
        columns = {c: mapping[c][v] if c in mapping else v for c, v in self.columns.items()}
        return Rows(columns, self.sizes | {c: int(m.max()) + 1 for c, m in mapping.items()})

    @property
    def domain(self) -> mbi.Domain:
        return mbi.Domain(tuple(self.sizes), tuple(self.sizes.values()))


def fit(rows: Rows, known: list[mbi.LinearMeasurement], steps: int, start: mbi.Model | None = None) -> mbi.Model:
    """The library's model of the measurements; it estimates the total itself."""
    total = mbi.estimation.minimum_variance_unbiased_total(known)
    return mbi.estimation.MirrorDescent().estimate(rows.domain, known, known_total=total, iters=steps, warm_start=start)


def drawn(scores: np.ndarray, epsilon: float, sensitivity: float, rng: np.random.Generator) -> int:
    odds = 0.5 * epsilon / sensitivity * (scores - scores.max())
    shares = np.exp(odds)
    return int(rng.choice(scores.size, p=shares / shares.sum()))


def mst(rows: Rows, rho: float, rng: np.random.Generator) -> tuple[Rows, mbi.Model, dict[str, np.ndarray]]:
    """A third of ρ each: one-way marginals, a maximum spanning tree, its two-way marginals."""
    names = list(rows.sizes)
    sigma = math.sqrt(len(names) * 3 / (2 * rho))
    known, mapping = [], {}
    for name in names:
        answer = rows.noisy((name,), sigma, rng)
        large = np.asarray(answer.noisy_measurement) >= 3 * sigma
        if not large.all():  # values with little noisy count become one
            mapping[name] = np.where(large, np.cumsum(large) - 1, large.sum())
        known.append(answer.compress(mapping, rows.domain))
    merged = rows.merged(mapping)
    pairs = tree(merged, fit(merged, known, 1000), rho / 3, rng)
    sigma = math.sqrt(len(pairs) * 3 / (2 * rho))
    known += [merged.noisy(pair, sigma, rng) for pair in pairs]
    return merged, fit(merged, known, 5000), mapping


def tree(rows: Rows, model: mbi.Model, rho: float, rng: np.random.Generator) -> list[Clique]:
    """Edges of a spanning tree, each by the exponential mechanism from the L1 distance to independence."""
    part = {name: i for i, name in enumerate(rows.sizes)}
    # Before any pair is measured the model is the product of its one-way marginals.
    one = {n: np.asarray(model.project((n,)).datavector()) for n in rows.sizes}
    total = float(model.total)
    far = {
        (a, b): float(np.abs(rows.counts((a, b)) - np.outer(one[a], one[b]).ravel() / total).sum())
        for a, b in itertools.combinations(rows.sizes, 2)
    }
    edges: list[Clique] = []
    epsilon = math.sqrt(8 * rho / (len(rows.sizes) - 1))
    while len(edges) < len(rows.sizes) - 1:
        left = [e for e in far if part[e[0]] != part[e[1]]]
        a, b = left[drawn(np.array([far[e] for e in left]), epsilon, 1.0, rng)]
        edges.append((a, b))
        joined, old = part[a], part[b]
        part = {n: joined if p == old else p for n, p in part.items()}
    return edges


def weights(names: Iterable[str]) -> dict[Clique, int]:
    """AIM's candidates, the subsets of the workload's marginals, and how much each overlaps with all of them."""
    names = list(names)
    workload = list(itertools.combinations(names, ORDER))
    closed = [c for k in range(1, ORDER + 1) for c in itertools.combinations(names, k)]
    return {c: sum(len(set(c) & set(w)) for w in workload) for c in closed}


def aim(rows: Rows, rho: float, rng: np.random.Generator) -> mbi.Model:
    """Round by round the marginal that the model misses most, until ρ is spent."""
    weight = weights(rows.sizes)
    exact = {c: rows.counts(c) for c in weight}
    rounds = ROUNDS * len(rows.sizes)
    sigma, epsilon = math.sqrt(rounds / (2 * (1 - CHOOSING) * rho)), math.sqrt(8 * CHOOSING * rho / rounds)
    known = [rows.noisy((n,), sigma, rng) for n in rows.sizes]
    spent, last = len(known) / (2 * sigma**2), False
    model = fit(rows, known, 1000)
    while not last:
        left = rho - spent
        if left < 2 * (1 / (2 * sigma**2) + epsilon**2 / 8):
            sigma, epsilon, last = math.sqrt(1 / (2 * (1 - CHOOSING) * left)), math.sqrt(8 * CHOOSING * left), True
        spent += 1 / (2 * sigma**2) + epsilon**2 / 8
        clique = worst(rows, model, weight, exact, (epsilon, sigma, MODEL_MB * spent / rho), rng)
        before = np.asarray(model.project(clique).datavector())
        known.append(rows.noisy(clique, sigma, rng))
        model = fit(rows, known, 1000, model)
        after = np.asarray(model.project(clique).datavector())
        if np.abs(after - before).sum() <= math.sqrt(2 / math.pi) * sigma * after.size:
            sigma, epsilon = sigma / 2, epsilon * 2
        print(f"{spent / rho:.1%} of the budget, {clique}", flush=True)
    return model


def worst(
    rows: Rows,
    model: mbi.Model,
    weight: dict[Clique, int],
    exact: dict[Clique, np.ndarray],
    terms: tuple[float, float, float],
    rng: np.random.Generator,
) -> Clique:
    """The candidate that the model answers worst beyond noise, among those that keep it small, drawn privately."""
    epsilon, sigma, megabytes = terms
    free = {c for m in model.cliques for k in range(1, len(m) + 1) for c in itertools.combinations(sorted(m), k)}
    measured = [tuple(c) for c in model.cliques]
    size = mbi.junction_tree.hypothetical_model_size
    small = [
        c for c in weight if tuple(sorted(c)) in free or size(rows.domain, [*measured, c]) * 8 / 2**20 <= megabytes
    ]
    errors = [
        weight[c]
        * (
            np.abs(exact[c] - np.asarray(model.project(c).datavector())).sum()
            - math.sqrt(2 / math.pi) * sigma * exact[c].size
        )
        for c in small
    ]
    return small[drawn(np.array(errors), epsilon, max(weight[c] for c in small), rng)]


def undone(made: dict[str, np.ndarray], mapping: dict[str, np.ndarray], rng: np.random.Generator) -> dict:
    """Merged values drawn uniformly from those that they stand for."""
    result = dict(made)
    for name, codes in mapping.items():
        result[name] = np.zeros_like(made[name])
        for value in np.unique(made[name]):
            here = made[name] == value
            result[name][here] = rng.choice(np.flatnonzero(codes == value), here.sum())
    return result


def main(asked: Request) -> None:
    rng = np.random.default_rng()
    rows = Rows(read_codes(asked.files["real"]), asked.domain)
    rho = zcdp(asked.epsilon, asked.delta)
    mapping: dict[str, np.ndarray] = {}
    if asked.method == "mst":
        rows, model, mapping = mst(rows, rho, rng)
    else:
        model = aim(rows, rho, rng)
    table = model.synthetic_data()
    made = {n: np.asarray(table.data[n]) for n in rows.sizes}
    write_codes(asked.files["output"], undone(made, mapping, rng))
    said("mbi", "jax", "numpy", note=f"ρ = {rho:.5g}")


if __name__ == "__main__":
    main(request())
