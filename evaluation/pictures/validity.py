"""Whether synthetic values could be real ones: their range, gaps, ids, and the rules of the schema; NOT private."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.values.value_tables import Values
from mechanisms.public.coded_table import CodedTable, count_cliques
from mechanisms.public.domain import Domain
from mechanisms.public.files import JsonDict
from mechanisms.public.rules.table_rules import Rules
from mechanisms.public.rules.transforms import Step

#: Columns that are listed, the least valid first; rows in which a derivation is looked at.
COLUMNS, ROWS = 60, 100_000


def valid_columns(values: Values) -> list[JsonDict]:
    """Per column: what shares of both tables are missing, and what share of the synthetic values the real table allows.

    A number or a date is allowed between the least and the largest real one, any other value where it is a real one.
    """
    listed: list[JsonDict] = []
    for column in values.columns:
        k, size = len(column.values), column.attribute.size
        real, synthetic = (
            np.bincount(values.tables[n].column(column.name), minlength=size) for n in ("real", "synthetic")
        )
        there = np.flatnonzero(real[:k])
        inside = slice(there[0], there[-1] + 1) if column.on_a_line and len(there) else there
        missing = [
            0 if not column.specials or column.specials[-1] != "missing" else int(t[-1]) for t in (real, synthetic)
        ]
        count = int(synthetic.sum()) - missing[1]
        listed.append(
            {"column": column.name, "kind": column.kind}
            | {"missing": [n / max(int(t.sum()), 1) for n, t in zip(missing, (real, synthetic), strict=True)]}
            | {"allowed": float(synthetic[:k][inside].sum() / count) if count else None}
            | {"how": "in the real range" if column.on_a_line else "among the real values"}
        )
    listed.sort(key=lambda c: (1.0 if c["allowed"] is None else c["allowed"], -abs(c["missing"][0] - c["missing"][1])))
    return listed[:COLUMNS]


def broken_rules(rules: Rules, domain: Domain, real: CodedTable, synthetic: CodedTable) -> list[JsonDict]:
    """Each rule of the schema and the shares of the rows of both tables that break it.

    Args:
        domain: of the schema as it is declared; a code behind it, of a value outside, breaks no rule.
    """
    if not min(real.rows, synthetic.rows):
        return []
    shares = zip(rows_in_zeros(rules, domain, real), rows_in_zeros(rules, domain, synthetic), strict=True)
    out: list[JsonDict] = [{"rule": rule, "real": own, "synthetic": other} for (rule, own), (_, other) in shares]
    for step in (s for s in rules.steps if s.takes and not s.gives):
        contradicted = [_contradicted(t, domain, step) for t in (real, synthetic)]
        if None not in contradicted:
            out.append({"rule": step.rule, "real": contradicted[0], "synthetic": contradicted[1]})
    return out


def rows_in_zeros(rules: Rules, domain: Domain, table: CodedTable) -> list[tuple[str, float]]:
    """Each rule of the schema about combinations that cannot be, and the share of the rows that have one, by its bins.

    Args:
        domain: as of `broken_rules`.
    """
    ordered = {frozenset(pair): " ≤ ".join(pair) for g in rules.ordered for pair in combinations(g.columns, 2)}
    broken = []
    for clique, cells in rules.zeros:
        counts = count_cliques(table, [clique])[0].reshape(table.domain.shape(clique))
        declared = counts[tuple(slice(0, domain[n].size) for n in clique)].ravel()
        name = ordered.get(frozenset(clique)) or f"impossible: {' × '.join(clique)}"
        broken.append((name, float(declared[cells].sum() / table.rows)))
    return broken


def _contradicted(table: CodedTable, domain: Domain, step: Step) -> float | None:
    """The share of the first ROWS rows; None for a rule that no row of codes can break."""
    names = (*step.takes, *step.reads)
    if any(n not in table.domain for n in names):
        return None
    codes: dict[str, NDArray[Any]] = {n: np.asarray(table.column(n)[:ROWS]) for n in names}
    placed = np.all([codes[n] < domain[n].size for n in names], axis=0)
    if not placed.any():
        return None
    against = step.forward({n: c[placed] for n, c in codes.items()})[1]
    return None if against is None else float(against.sum() / len(placed))
