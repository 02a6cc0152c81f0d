"""Columns that follow from another by a mapping that no public document gives: it is measured with noise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError, check_names
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements
from mechanisms.public.schema.fields import FieldDict
from mechanisms.public.workload import Workload

FIX = "mapped: {zip code: {from: station}}: two columns of the table"


@dataclass(frozen=True)
class Mapped:
    """A column, and the one that it follows from nearly (Li et al. 2021b, section 5.4).

    The two are measured together, in place of the target's one-way marginal, and in no other joint marginal; in the
    synthetic table the target is for each code of the source the one with the largest noisy count.
    """

    target: str
    source: str


def parse_mapped(given: object, names: Collection[str], where: str) -> tuple[tuple[Mapped, ...], FieldDict]:
    """`mapped: {column: {from: other}}`, and the fields that say it again.

    Raises:
        UserError: another form, unknown columns, or a column that follows from one that follows itself.
    """
    entries = {} if given is None else given
    if not isinstance(entries, Mapping):
        raise UserError(f"mapped: got {given!r}", where=where, fix=FIX)
    parsed = []
    for name, fields in entries.items():
        if not isinstance(fields, Mapping) or set(fields) != {"from"}:
            raise UserError(f"mapped {name!r}: got {fields!r}", where=where, fix=FIX)
        pair = Mapped(str(name), str(fields["from"]))
        check_names((pair.target, pair.source), names, f"mapped {name!r}: no column", where=where, fix=FIX)
        if pair.source in entries:
            problem = f"mapped {name!r}: {pair.source!r} is mapped itself"
            raise UserError(problem, where=where, fix="a column that is synthesized")
        parsed.append(pair)
    return tuple(parsed), {m.target: {"from": m.source} for m in parsed}


def check_mapped(mapped: Sequence[Mapped], table: Domain, measured: Domain) -> None:
    """UserError where a step of the schema takes or changes one of the columns."""
    for pair in mapped:
        for name in (pair.target, pair.source):
            if name not in measured or measured[name] != table[name]:
                fix = "columns that stand in no derive, recode, availability or joint_bins"
                raise UserError(
                    f"column {name!r} is measured in another form", where=f"mapped {pair.target!r}", fix=fix
                )


def in_pairs(domain: Domain, mapped: Sequence[Mapped], clique: Clique) -> Clique:
    """A target's one-way marginal as the marginal with its source; any other marginal as it is."""
    source = {m.target: m.source for m in mapped}
    if len(clique) == 1 and clique[0] in source:
        return domain.canonical((clique[0], source[clique[0]]))
    return clique


def with_pairs(domain: Domain, mapped: Sequence[Mapped], workload: Workload) -> Workload:
    """The workload with every target in the marginal with its source, and in no other."""
    weights = {in_pairs(domain, mapped, c): w for c, w in zip(workload.cliques, workload.weights, strict=True)}
    for pair in mapped:
        weights.setdefault(domain.canonical((pair.target, pair.source)), 1.0)
    order = sorted(weights, key=lambda c: (len(c), domain.axes(c)))
    return Workload(tuple(order), tuple(weights[c] for c in order), workload.left_out)


def filled(synthetic: CodedTable, mapped: Sequence[Mapped], measurements: Measurements) -> CodedTable:
    """Synthetic rows with every target as the noisy mapping says; where its marginal was lost, as it was made.

    Guarantee: post-processing; costs no privacy.
    """
    domain, columns = synthetic.domain, list(synthetic.columns)
    for pair in mapped:
        clique = domain.canonical((pair.target, pair.source))
        whole = [a for a in measurements.answers if a.clique == clique and isinstance(a.query, Identity)]
        if not whole:
            continue
        counts = sum((a.values / a.stddev**2 for a in whole), np.zeros(domain.cells(clique)))
        best = counts.reshape(domain.shape(clique)).argmax(axis=clique.index(pair.target))
        place = domain.index(pair.target)
        columns[place] = best.astype(code_dtype(domain[pair.target].size))[synthetic.column(pair.source)]
    return replace(synthetic, columns=tuple(columns))
