"""Tables that nobody tuned on: with a hidden structure that the seed draws, or cut at random out of public ones."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Domain
from tests.bench.grid.coded import coded_table

Codes = NDArray[np.int64]


def _drawn(shares: NDArray[np.float64], rng: np.random.Generator) -> Codes:
    """One code per row of `shares`, (rows, codes), each of which sums to 1."""
    return np.asarray((rng.random(len(shares))[:, None] > shares.cumsum(axis=1)[:, :-1]).sum(axis=1))


def _table(columns: list[Codes], sizes: list[int], *, line: bool = False) -> CodedTable:
    names = [f"c{i:03}" for i in range(len(sizes))]
    on_line = names if line else ()
    return coded_table(dict(zip(names, columns, strict=True)), dict(zip(names, sizes, strict=True)), on_line)


def network(rng: np.random.Generator, rows: int, columns: int, largest: int) -> CodedTable:
    """A Bayesian network: each column has up to three parents among the earlier ones, and skewed conditionals.

    The values of the parents are hashed to at most 60 configurations, each with a distribution of its own.
    """
    sizes = [int(s) for s in np.round(np.exp(rng.uniform(np.log(2), np.log(largest), columns)))]
    codes: list[Codes] = []
    for i, size in enumerate(sizes):
        parents = rng.choice(i, min(i, int(rng.integers(0, 4))), replace=False) if i else []
        state = np.zeros(rows, np.int64)
        for parent in parents:
            state = state * sizes[parent] + codes[parent]
        state = rng.integers(0, 60, int(state.max()) + 1)[state]
        codes.append(_drawn(rng.dirichlet(np.full(size, 0.4), 60)[state], rng))
    return _table(codes, sizes)


def copula(rng: np.random.Generator, rows: int, columns: int) -> CodedTable:
    """A Gaussian copula with three hidden factors, each column cut into 2 to 60 bins of random weights."""
    loads = rng.normal(0, 1, (3, columns)) * rng.choice([0.3, 1.0, 2.0], columns)
    values = rng.normal(size=(rows, 3)) @ loads + rng.normal(size=(rows, columns))
    sizes = [int(s) for s in np.round(np.exp(rng.uniform(np.log(2), np.log(60), columns)))]
    codes = []
    for i, size in enumerate(sizes):
        cuts = np.quantile(values[:, i], rng.dirichlet(np.full(size, 2.0)).cumsum()[:-1])
        codes.append(np.searchsorted(cuts, values[:, i]))
    return _table(codes, sizes, line=True)


def survey(rng: np.random.Generator, rows: int, items: int, factors: int) -> CodedTable:
    """Items of five ordered answers; each loads on one hidden factor and a little on another."""
    hidden = rng.normal(size=(rows, factors))
    codes = []
    for _ in range(items):
        first, second = rng.choice(factors, 2, replace=False)
        tendency = rng.uniform(0.4, 1.5) * hidden[:, first] + rng.uniform(-0.4, 0.4) * hidden[:, second]
        cuts = np.sort(rng.normal(rng.normal(0, 0.5), 1.2, 4))
        codes.append(np.searchsorted(cuts, tendency + rng.normal(size=rows)))
    return _table(codes, [5] * items, line=True)


def many_codes(rng: np.random.Generator, rows: int) -> CodedTable:
    """Twelve columns of 500 codes with falling shares; three pairs depend strongly, three weakly."""
    size = 500
    codes: list[Codes] = []
    for i in range(12):
        shares = rng.permutation(1 / np.arange(1, size + 1) ** rng.uniform(0.4, 1.2))
        own = rng.choice(size, rows, p=shares / shares.sum())
        if i % 2:
            follows = rng.random(rows) < (0.8 if i < 6 else 0.15)
            own = np.where(follows, rng.permutation(size)[codes[i - 1]], own)
        codes.append(own)
    return _table(codes, [size] * 12)


def clicks(rng: np.random.Generator, rows: int) -> CodedTable:
    """Visits: country, device, and ten steps over 40 pages by a chain of the device; the last page is the end."""
    pages, steps = 40, 10
    country, device = rng.choice(12, rows, p=rng.dirichlet(np.full(12, 0.7))), rng.integers(0, 3, rows)
    moves = rng.dirichlet(np.full(pages, 0.15), (3, pages))
    moves[:, -1] = np.eye(pages)[-1]
    codes, page = [country, device], _drawn(rng.dirichlet(np.full(pages, 0.3), 12)[country], rng)
    for _ in range(steps):
        codes.append(page)
        page = _drawn(moves[device, page], rng)
    return _table(codes, [12, 3] + [pages] * steps)


def cluster(rng: np.random.Generator, rows: int) -> CodedTable:
    """Thirty columns of which five hang together tightly, pair by pair and beyond; all others are independent."""
    sizes = [int(s) for s in rng.integers(2, 13, 30)]
    members = set(rng.choice(30, 5, replace=False).tolist())
    classes = rng.choice(12, rows, p=rng.dirichlet(np.full(12, 2.0)))
    codes = []
    for i, size in enumerate(sizes):
        if i in members:
            codes.append(_drawn(rng.dirichlet(np.full(size, 0.25), 12)[classes], rng))
        else:
            codes.append(rng.choice(size, rows, p=rng.dirichlet(np.ones(size))))
    return _table(codes, sizes)


def copies(rng: np.random.Generator, rows: int) -> CodedTable:
    """Six columns of 60 ordered codes that nearly repeat the first, as the times of one event; six others."""
    first = rng.choice(60, rows, p=rng.dirichlet(np.full(60, 1.0)))
    near = [np.clip(first + rng.poisson(rng.uniform(0.05, 1.0), rows), 0, 59) for _ in range(6)]
    others = [_drawn(rng.dirichlet(np.full(6, 0.5), 60)[first], rng) for _ in range(3)]
    return _table([first, *near, *others, *(rng.integers(0, 8, rows) for _ in range(3))], [60] * 7 + [6] * 3 + [8] * 3)


def nested(rng: np.random.Generator, rows: int) -> CodedTable:
    """City → county → state, and branch → sector: codes that decide coarser ones, beside columns of the state."""
    county, state = rng.integers(0, 40, 200), rng.integers(0, 12, 40)
    sector = rng.integers(0, 9, 80)
    city = rng.choice(200, rows, p=rng.dirichlet(np.full(200, 0.5)))
    branch = np.where(rng.random(rows) < 0.5, rng.integers(0, 80, rows), rng.integers(0, 80, 200)[city])
    places = [city, county[city], state[county[city]], branch, sector[branch]]
    others = [_drawn(rng.dirichlet(np.full(5, 0.5), 12)[places[2]], rng) for _ in range(5)]
    return _table(places + others, [200, 40, 12, 80, 9] + [5] * 5)


def binary(rng: np.random.Generator, rows: int) -> CodedTable:
    """Sixteen columns of two codes that all depend on each other alike: yes and no to parts of one hidden scale."""
    scale = rng.normal(size=rows)
    codes = [(rng.uniform(1.0, 1.6) * scale + rng.normal(size=rows) > rng.normal(0, 0.4)) * 1 for _ in range(16)]
    return _table(codes, [2] * 16)


#: Name → a table of its family, from a source of randomness.
FAMILIES: dict[str, Callable[[np.random.Generator], CodedTable]] = {
    "network": lambda rng: network(rng, 30_000, 20, 30),
    "small_network": lambda rng: network(rng, 1_500, 9, 60),
    "copula": lambda rng: copula(rng, 20_000, 15),
    "survey_100": lambda rng: survey(rng, 10_000, 100, 6),
    "survey_40": lambda rng: survey(rng, 10_000, 40, 4),
    "many_codes": lambda rng: many_codes(rng, 50_000),
    "clicks": lambda rng: clicks(rng, 40_000),
    "cluster": lambda rng: cluster(rng, 20_000),
    "copies": lambda rng: copies(rng, 30_000),
    "nested": lambda rng: nested(rng, 20_000),
    "binary": lambda rng: binary(rng, 20_000),
}


def family_table(name: str, seed: int) -> CodedTable:
    """The table of a family that a seed draws; families do not share their draws."""
    return FAMILIES[name](np.random.default_rng([seed, *name.encode()]))


#: So many tables are drawn, of so many rows and columns.
TABLES = 30
ROWS = (500, 50_000)
COLUMNS = (4, 30)
#: Two columns become one of at most so many codes.
MOST_MERGED = 300
#: The share of columns that are merged with the next, coarsened, recoded at random; of ordered ones, said to be none.
MERGED, COARSE, RECODED, UNORDERED = 0.1, 0.2, 0.3, 0.3

AnyCodes = NDArray[np.integer]
Column = tuple[AnyCodes, int, bool]
PREFIX = "derived_"


def derived_names(draw: int) -> list[str]:
    return [f"{PREFIX}{draw}_{i:02}" for i in range(TABLES)]


def derived(name: str, sources: Sequence[str], whole_table: Callable[[str], CodedTable]) -> CodedTable:
    """The table of a name, which says the draw.

    Args:
        sources: the public tables; `whole_table` reads one.
    """
    rng = np.random.default_rng([int(part) for part in name.removeprefix(PREFIX).split("_")])
    whole = whole_table(sources[int(rng.integers(len(sources)))])
    most = min(ROWS[1], whole.rows)
    rows = int(np.exp(rng.uniform(np.log(ROWS[0]), np.log(most))))
    keep = np.sort(rng.choice(whole.rows, rows, replace=False))
    width = int(rng.integers(COLUMNS[0], min(COLUMNS[1], len(whole.domain.names)) + 1))
    picked = rng.permutation(len(whole.domain.names))[:width]
    columns = [_column_of(whole.domain, whole.columns[i][keep], int(i)) for i in picked]
    changed = {f"c{i:02}": _recoded(c, rng) for i, c in enumerate(_merged(columns, rng))}
    sizes, line = {n: size for n, (_, size, _) in changed.items()}, [n for n, (_, _, line) in changed.items() if line]
    return coded_table({n: codes for n, (codes, _, _) in changed.items()}, sizes, line)


def _column_of(domain: Domain, codes: AnyCodes, place: int) -> Column:
    fact = domain.attributes[place]
    return codes.astype(np.int64), fact.size, bool(fact.ordered)


def _merged(columns: list[Column], rng: np.random.Generator) -> list[Column]:
    """Some columns joined with the one after them: a code for each pair of their codes."""
    found: list[Column] = []
    for codes, size, line in columns:
        if len(found) > 1 and rng.random() < MERGED and found[-1][1] * size <= MOST_MERGED:
            last, others, _ = found.pop()
            found.append((last * size + codes, others * size, False))
        else:
            found.append((codes, size, line))
    return found


def _recoded(column: Column, rng: np.random.Generator) -> Column:
    """A column coarsened to neighbours of equal width, its codes shuffled, or its order left unsaid."""
    codes, size, line = column
    if size > 3 and rng.random() < COARSE:
        bins = int(rng.integers(2, size))
        codes, size = codes * bins // size, bins
    if rng.random() < RECODED:
        return rng.permutation(size)[codes], size, False
    return codes, size, line and rng.random() >= UNORDERED
