"""Groups of attributes that depend on each other weakly across groups (Li et al. 2021b, section 5.4)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mechanisms.public.domain import Clique


def grouped(names: Sequence[str], pairs: Sequence[Clique], gaps: Sequence[float], largest: int) -> list[list[str]]:
    """Groups of at most `largest` attributes, by average linkage: the two groups nearest to each other join first.

    Nearness of two groups is the mean distance from independence over the pairs between them; pairs that are no
    candidates, and distances below 0, count as 0. Groups that nothing ties stay apart. (Linkage of a library, as in
    `schema/cluster.py`, knows no largest group: two groups that are too large together must let the next pair join.)

    Args:
        gaps: per pair its distance from independence, in records; noisy or from a public table.
    Returns:
        the groups, each in the order of `names`.
    """
    sums: dict[frozenset[int], float] = {}
    place = {n: i for i, n in enumerate(names)}
    for pair, gap in zip(pairs, gaps, strict=True):
        if gap > 0:
            sums[frozenset(place[n] for n in pair)] = float(gap)
    members = {i: [n] for i, n in enumerate(names)}
    while True:
        near = [
            (-total / (len(members[a]) * len(members[b])), a, b)
            for (a, b), total in ((sorted(k), t) for k, t in sums.items())
            if len(members[a]) + len(members[b]) <= largest
        ]
        if not near:
            return [sorted(m, key=place.__getitem__) for _, m in sorted(members.items())]
        _, a, b = min(near)
        members[a] += members.pop(b)
        del sums[frozenset((a, b))]
        for key in [k for k in sums if b in k]:
            (other,) = key - {b}
            both = frozenset((a, other))
            sums[both] = sums.get(both, 0.0) + sums.pop(key)


def within(pairs: Sequence[Clique], groups: Collection[Collection[str]]) -> list[int]:
    """The places of the pairs that lie in one group."""
    home = {n: i for i, group in enumerate(groups) for n in group}
    return [i for i, (a, b) in enumerate(pairs) if home[a] == home[b]]
