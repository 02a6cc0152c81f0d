"""Tables of persons whose records are alike to a chosen degree: listings of hosts, and waves of a survey."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.persons.person_figures import likeness

Floats = NDArray[np.float64]
AREAS = [f"area {i:02}" for i in range(24)]
ROOMS = ["entire home", "private room", "shared room", "hotel room"]
LISTINGS = f"""name: listings
source: invented
confirmed_public: true
columns:
  area: {{kind: categorical, values: [{", ".join(AREAS)}], missing: false}}
  room: {{kind: categorical, values: [{", ".join(ROOMS)}], missing: false}}
  price: {{kind: integer, missing: false, bins: {{edges: [0, 40, 60, 80, 100, 130, 160, 200, 260, 1000]}}}}
  nights: {{kind: integer, missing: false, bins: {{edges: [1, 2, 3, 4, 6, 9, 15, 30, 61]}}}}
  reviews: {{kind: integer, missing: false, bins: {{edges: [0, 1, 3, 6, 10, 20, 40, 80, 400]}}}}
unit: {{column: host, records: {{max: 12}}}}
"""
WAVES = """name: waves
source: invented
confirmed_public: true
columns:
  wave: {kind: integer, min: 1, max: 6, missing: false}
  health: {kind: categorical, values: [1, 2, 3, 4, 5], ordinal: true, missing: false}
  income: {kind: integer, bins: {edges: [0, 600, 900, 1200, 1500, 1900, 2400, 3200, 10000]}, missing: false}
  party: {kind: categorical, values: [a, b, c, d, e, none], missing: false}
  region: {kind: categorical, values: [north, south, east, west], missing: false}
unit: {column: person, constant: [region], order: wave, records: {max: 6}}
"""


@dataclass(frozen=True)
class Family:
    """A kind of table: `make` gives rows of so many persons, in which the columns are alike to a degree."""

    schema: str
    owner: str
    make: Callable[[float, int, int], pd.DataFrame]
    columns: tuple[str, ...]


def _owners(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.repeat(np.arange(sizes.size), sizes)


def _levels(owners: NDArray[np.int64], strength: float, rng: np.random.Generator) -> Floats:
    """A normal number per record; two of one person correlate as strongly as is said."""
    own = rng.normal(size=int(owners.max()) + 1)[owners]
    return np.asarray(np.sqrt(strength) * own + np.sqrt(1 - strength) * rng.normal(size=owners.size), np.float64)


def _kept(owners: NDArray[np.int64], shares: Floats, strength: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """A code per record; two of one person are drawn as one with that probability."""
    own = rng.choice(shares.size, int(owners.max()) + 1, p=shares)[owners]
    return np.where(rng.random(owners.size) < np.sqrt(strength), own, rng.choice(shares.size, owners.size, p=shares))


def listings(strength: float, hosts: int, seed: int) -> pd.DataFrame:
    """Listings of hosts, most of whom have one or two."""
    rng = np.random.default_rng(seed)
    owners = _owners(np.minimum(rng.geometric(0.4, hosts), 12))
    areas = rng.dirichlet(np.full(len(AREAS), 2.0))
    made = {
        "area": np.array(AREAS)[_kept(owners, areas, strength, rng)],
        "room": np.array(ROOMS)[_kept(owners, np.array([0.55, 0.35, 0.06, 0.04]), strength, rng)],
        "price": np.clip(np.exp(4.7 + 0.6 * _levels(owners, strength, rng)), 0, 999).astype(int),
        "nights": np.clip(np.exp(1.2 + 0.8 * _levels(owners, strength, rng)), 1, 60).astype(int),
        "reviews": np.clip(np.exp(1.8 + 1.4 * _levels(owners, 0.0, rng)) - 1, 0, 399).astype(int),
    }
    rows = pd.DataFrame({"host": owners, **made})
    return rows.sample(frac=1, random_state=seed).reset_index(drop=True)


def waves(strength: float, persons: int, seed: int, most: int = 6) -> pd.DataFrame:
    """Answers of persons in two to six waves, or more, that follow each other."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, most + 1, persons)
    owners = _owners(sizes)
    place = np.arange(owners.size) - (np.cumsum(sizes) - sizes)[owners]
    first = (rng.random(persons) * (most + 1 - sizes)).astype(int)[owners]
    parties = np.array([0.28, 0.24, 0.16, 0.1, 0.07, 0.15])
    made = {
        "wave": 1 + first + place,
        "health": 1 + np.searchsorted([-1.6, -0.8, 0.2, 1.1], _levels(owners, strength, rng)),
        "income": np.clip(np.exp(7.3 + 0.5 * _levels(owners, strength, rng)), 0, 9999).astype(int),
        "party": np.array(["a", "b", "c", "d", "e", "none"])[_kept(owners, parties, strength, rng)],
        "region": np.array(["north", "south", "east", "west"])[rng.integers(0, 4, persons)][owners],
    }
    return pd.DataFrame({"person": owners, **made})


FAMILIES: Mapping[str, Family] = {
    "listings": Family(LISTINGS, "host", listings, ("area", "room", "price", "nights")),
    "waves": Family(WAVES, "person", waves, ("health", "income", "party")),
}


def kinship(rows: pd.DataFrame, owner: str, column: str) -> float:
    """How alike two records of one person are: 0 for records dealt at random, 1 for equal ones.

    Of numbers the intraclass correlation of their ranks; of others how often another record of a record's person agrees
    with it, beyond how often one of anybody does.
    """
    owners = pd.factorize(rows[owner])[0].astype(np.int64)
    if pd.api.types.is_numeric_dtype(rows[column]):
        return likeness(np.asarray(rows[column].rank(), np.float64), owners) or 0.0
    codes, shares = pd.factorize(rows[column])[0], rows[column].value_counts(normalize=True).to_numpy()
    cells, each = np.unique(owners * 1000 + codes, return_counts=True)
    sizes = np.bincount(owners)
    agree = (each * (each - 1) / np.maximum(sizes[cells // 1000] - 1, 1)).sum() / max(int(sizes[sizes > 1].sum()), 1)
    chance = float((shares**2).sum())
    return float((agree - chance) / (1 - chance))
