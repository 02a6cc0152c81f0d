"""SDNist's two counts of real records that a synthetic table shows: unique exact matches, and apparent matches."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from evaluation.papers.challenges.kmarginal import Codes, flat_key, pool_tables
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.json_values import JsonDict

#: What somebody may know of a person: SDNist's quasi-identifiers.
QUASI = ("SEX", "MSP", "RAC1P", "OWN_RENT", "EDU", "PUMA", "INDP_CAT", "HISP")


@dataclass(frozen=True)
class ApparentMatches:
    """Real records that a synthetic table shows.

    Attributes:
        unique: real records that no other real record equals; exact: those that the synthetic table has.
        quasi: columns that make an apparent match; empty where the table has none of them.
        apparent: real records that are unique in these and meet a synthetic one that is, too.
        agreeing: the mean share of the other columns in which such a pair agrees; None without a pair or such columns.
    """

    unique: int
    exact: int
    quasi: tuple[str, ...] = ()
    apparent: int = 0
    agreeing: float | None = None

    def to_json(self) -> JsonDict:
        """JSON values."""
        return asdict(self) | {"quasi": list(self.quasi)}


def matches(real: CodedTable, synthetic: CodedTable) -> ApparentMatches:
    """Both counts; no measure of privacy: a random sample of people has such matches, too."""
    pooled = pool_tables(real, synthetic)
    key = flat_key(pooled, real.domain.names)
    alone = _alone(key[: real.rows])
    exact = int(np.isin(key[alone], key[real.rows :]).sum())
    quasi = tuple(n for n in QUASI if n in real.domain)
    if not quasi:
        return ApparentMatches(len(alone), exact)
    key = flat_key(pooled, quasi)
    ours, theirs = _alone(key[: real.rows]), _alone(key[real.rows :]) + real.rows
    _, i, j = np.intersect1d(key[ours], key[theirs], assume_unique=True, return_indices=True)
    others = [pooled.columns[n] for n in real.domain.names if n not in quasi]
    shares = [np.mean(c[ours[i]] == c[theirs[j]]) for c in others] if len(i) else []
    return ApparentMatches(len(alone), exact, quasi, len(i), float(np.mean(shares)) if shares else None)


def _alone(key: Codes) -> Codes:
    """The places of the keys that occur once."""
    _, places, counts = np.unique(key, return_index=True, return_counts=True)
    return np.asarray(places[counts == 1])
