"""Small worlds for the graphical model: every joint table fits in memory, so that brute force is the judge."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable, count_cliques
from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.pgm.inference import JunctionTreeInference, onto, spread

NAMES = "abcdef"

#: Clique sets of every shape, over up to six attributes.
SHAPES: dict[str, list[str]] = {
    "nothing": [],
    "one attribute": ["c"],
    "chain": ["ab", "bc", "cd", "de", "ef"],
    "star": ["ab", "ac", "ad", "ae", "af"],
    "tree of triples": ["abc", "bcd", "bef"],
    "cycle": ["ab", "bc", "cd", "de", "ef", "af"],
    "two cycles": ["ab", "bc", "ac", "de", "ef", "df"],
    "grid": ["ab", "bc", "de", "ef", "ad", "be", "cf"],
    "disconnected": ["ab", "de"],
    "repeated": ["ab", "ab", "bc", "ab", "b"],
    "nested": ["abcd", "ab", "cd", "a", "d", "de"],
    "missing attributes": ["bd"],
    "complete": ["ab", "ac", "ad", "bc", "bd", "cd"],
    "everything": ["abcdef"],
}

SIZES = st.lists(st.integers(1, 4), min_size=6, max_size=6)
CLIQUES = st.lists(
    st.sets(st.sampled_from(NAMES), min_size=1, max_size=4).map(lambda s: "".join(sorted(s))), max_size=7
)


def world(sizes: Sequence[int] = (2, 3, 4, 2, 3, 2)) -> Domain:
    return Domain(tuple(Attribute(n, s) for n, s in zip(NAMES, sizes, strict=True)))


def cliques_of(words: Sequence[str]) -> list[Clique]:
    return [tuple(w) for w in words]


def joint(engine: JunctionTreeInference, potentials: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Probabilities of all combinations and log Z, by brute force."""
    logs = sums(engine, potentials if engine.allowed is None else potentials + engine.allowed)
    top = logs.max()
    weights = np.exp(logs - top)
    return weights / weights.sum(), float(top + np.log(weights.sum()))


def sums(engine: JunctionTreeInference, flat: NDArray[np.float64]) -> NDArray[np.float64]:
    """For every combination of all attributes the sum of the nodes' cells that it lies in."""
    names = engine.tree.domain.names
    total = np.zeros(engine.tree.domain.shape(names))
    for clique, table in zip(engine.tree.cliques, engine.views(flat), strict=True):
        total = total + spread(table, clique, names)
    return total


def side(table: NDArray[np.float64], clique: Clique) -> NDArray[np.float64]:
    """A marginal of a joint table, with the axes of the clique as given."""
    gone, order = onto(tuple(NAMES[: table.ndim]), clique)
    return table.sum(axis=gone).transpose(order)


def noisy_counts(table: CodedTable, cliques: Sequence[Clique], stddev: float, seed: int) -> tuple[NoisyMarginal, ...]:
    """Whole marginals of a table with Gaussian noise; that of none is said to be small."""
    rng, said = np.random.default_rng(seed), max(stddev, 1e-6)
    counts = zip(cliques, count_cliques(table, cliques), strict=True)
    return tuple(
        NoisyMarginal(c, Identity(n.size), n + rng.normal(0, stddev, n.size), "gaussian", said, str(i))
        for i, (c, n) in enumerate(counts)
    )


def told(domain: Domain, about: Sequence[tuple[str, QueryMatrix | None, NDArray[np.float64], float]]) -> Measurements:
    """Measurements from (clique, query, values, σ); no query: the whole marginal."""
    answers = [
        NoisyMarginal(
            tuple(c), q or Identity(domain.cells(tuple(c))), np.asarray(v, float).ravel(), "gaussian", s, str(i)
        )
        for i, (c, q, v, s) in enumerate(about)
    ]
    return Measurements(domain, tuple(answers))
