"""Some pairs of columns as cells, real and synthetic: the worst ones, and those that depend most; NOT private."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evaluation.accuracy.anita_accuracy import apart_edges
from evaluation.readings.distance_ends import expected_tvd
from mechanisms.public.coded_table import AnyTable, CodedTable, count_cliques
from mechanisms.public.domain import Clique
from mechanisms.public.files import JsonDict
from mechanisms.public.schema.code_labels import code_names
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema

#: Pairs of either sort, and cells in a row, at most.
WORST, DEPENDENT, CELLS = 4, 2, 10
#: Why a pair is drawn that the settings name.
ASKED = "asked for"
#: A pair is looked at in more cells than are drawn, but not in more than these.
COUNTED = 4_000_000

Ints = NDArray[np.int64]


def chosen_pairs(
    distances: Sequence[tuple[Clique, float]],
    names: Sequence[str],
    strengths: Sequence[Sequence[float | None]],
    asked: Sequence[tuple[str, str]] = (),
) -> list[tuple[str, str, str]]:
    """Pairs and why each was chosen: those asked for, those farthest from the truth, then the strongest dependences.

    Args:
        distances: of marginals, of any number of columns.
        names, strengths: columns, and a symmetric matrix over them.
        asked: pairs in the order in which they are drawn, rows of cells first.
    """
    named = {frozenset(pair): (*pair, ASKED) for pair in asked}
    pairs = sorted((p for p in distances if len(p[0]) == 2), key=lambda p: -p[1])[:WORST]
    chosen = dict.fromkeys(named, ASKED)
    for clique, _ in pairs:
        chosen.setdefault(frozenset(clique), "farthest from the real table")
    strong = sorted(
        ((value, names[i], names[j]) for i, line in enumerate(strengths) for j, value in enumerate(line[:i]) if value),
        reverse=True,
    )
    rest = [frozenset((a, b)) for _, a, b in strong]
    for pair in [p for p in rest if p not in chosen][:DEPENDENT]:
        chosen[pair] = "among the strongest dependences"
    order = {name: i for i, name in enumerate(names)}
    out = []
    for pair, why in chosen.items():
        if pair in named:
            out.append(named[pair])
            continue
        a, b = sorted(pair, key=lambda n: (order.get(n, len(order)), n))
        out.append((a, b, why))
    return out


def pair_maps(
    pairs: Sequence[tuple[str, str, str]], real: AnyTable, synthetic: CodedTable, schema: Schema
) -> list[JsonDict]:
    """Shares of the records in at most CELLS × CELLS cells of each pair, the same cells in both tables.

    Neighbours of an ordered column are drawn together so that each row has about as many real records; of other columns
    the rarer values are one row.
    """
    domain, drawn = real.domain, []
    pairs = [p for p in pairs if domain.cells(domain.canonical(p[:2])) <= COUNTED]
    if not pairs or not min(real.rows, synthetic.rows):
        return []
    singles = {n for a, b, _ in pairs for n in (a, b)}
    coarse = {n: grouped_codes(schema[n], count_cliques(real, [(n,)])[0], CELLS) for n in singles}
    cliques = [domain.canonical(p[:2]) for p in pairs]
    both = [count_cliques(t, cliques) for t in (real, synthetic)]
    for (a, b, why), clique, *counts in zip(pairs, cliques, *both, strict=True):
        tables = []
        for each in counts:
            cells = np.asarray(each, np.float64).reshape(domain.shape(clique))
            cells = cells if clique[0] == a else cells.T
            merged = np.zeros((len(coarse[a][0]), len(coarse[b][0])))
            np.add.at(merged, (coarse[a][1][:, None], coarse[b][1][None, :]), cells)
            tables.append(merged / max(merged.sum(), 1))
        whole = np.asarray(counts[0], np.float64)
        drawn.append(
            {"a": a, "b": b, "why": why, "rows": coarse[a][0], "columns": coarse[b][0]}
            | {"tvd": float(np.abs(whole / whole.sum() - counts[1] / counts[1].sum()).sum() / 2)}
            | {"expected": expected_tvd(whole / whole.sum(), real.rows, synthetic.rows)}
            | {"real": tables[0].tolist(), "synthetic": tables[1].tolist()}
        )
    return drawn


def grouped_codes(column: Column, counts: Ints, most: int, *, even: bool = False) -> tuple[list[str], Ints]:
    """The names of at most so many groups of codes, and the group of each code: neighbours, or the rarer ones as one.

    Args:
        counts: of real records.
        even: neighbours in groups of as many codes each; else of about as many records.
    """
    labels, values = [*code_names(column)], column.value_codes
    size = len(labels)
    if size <= most:
        return labels, np.arange(size)
    if not column.on_a_line:
        order = np.argsort(-counts, kind="stable")
        groups = np.full(size, most - 1)
        groups[order[: most - 1]] = np.arange(most - 1)
        return [*(labels[i] for i in order[: most - 1]), f"{size - most + 1} others"], groups
    room = most - min(size - values, most - 2)
    inner = np.arange(values)[:: -(-values // room)][1:] if even else apart_edges(counts[:values], room)
    groups = np.concatenate(
        [np.searchsorted(inner, np.arange(values), side="right"), len(inner) + 1 + np.arange(size - values)]
    )
    starts, ends = [0, *inner.tolist()], [*(inner - 1).tolist(), values - 1]
    names = [
        labels[a] if a == b else f"{labels[a].split(' to ')[0]} … {labels[b].split(' to ')[-1]}"
        for a, b in zip(starts, ends, strict=True)
    ]
    return [*names, *labels[values:]], groups
