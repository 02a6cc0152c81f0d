"""Engineering: the table's columns → the attributes that are measured and synthesized, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.rules.structural_zeros import Zeros, after, joined, mend, permuted
from mechanisms.public.rules.transforms import MAX_COMBINATIONS, Availability, Coarsen, Derive, Recode, Step

CHUNK = 1 << 20


@dataclass(frozen=True, eq=False)
class Engineering:
    """The steps of a schema in the order in which they are applied, and the domains between them.

    Attributes:
        domains: of the table, and after each step; the last one is measured.
        steps: the derivations first.
        zeros: structural zeros over the measured domain, for the synthesizers.
        free: structural zeros over the columns that are not derived: what `undo` keeps the rows to.
        alone: attributes of the measured domain that stand in no joint marginal.
    """

    domains: tuple[Domain, ...]
    steps: tuple[Step, ...]
    zeros: tuple[Zeros, ...]
    free: tuple[Zeros, ...]
    alone: frozenset[str]

    @property
    def measured(self) -> Domain:
        return self.domains[-1]

    @property
    def derived(self) -> int:
        """How many of the steps are derivations."""
        return sum(isinstance(step, Derive) for step in self.steps)


def build_engineering(
    domain: Domain, steps: Iterable[Step], zeros: Iterable[Zeros] = (), alone: Iterable[str] = ()
) -> Engineering:
    """The domains and zeros that follow from the steps.

    Args:
        domain: of the table.
        steps: derivations first; among them, one that reads a derived column stands before the one that derives it.
        zeros: over the table's columns.
        alone: columns that stand in no joint marginal.

    Raises:
        UserError: two steps take the same column; no combination is left possible.
    """
    steps, domains, all_zeros = tuple(steps), [domain], list(joined(zeros))
    free, fixed = tuple(all_zeros), False
    for step in steps:
        if not isinstance(step, Derive) and not fixed:
            free, fixed = tuple(all_zeros), True
        domains.append(_behind(step, domains[-1]))
        pushed = [after(step, z, domains[-2], domains[-1]) for z in all_zeros]
        if isinstance(step, Derive) and None in [z if z is None else 0 for z in pushed]:
            fix = f"coarser columns: with the sources at most {MAX_COMBINATIONS:,} combinations"
            raise UserError("its structural zeros need too large a table", where=step.rule, fix=fix)
        all_zeros = [z for z in pushed if z is not None and z[1].any()]
        if isinstance(step, Availability):
            all_zeros.append(permuted(domains[-1], tuple(a.name for a in step.gives), step.impossible()))
    if not fixed:
        free = tuple(all_zeros)
    free = joined([*free, *_combinations(steps, domains)])
    lonely = {*alone, *(s.gives[1].name for s in steps if isinstance(s, Coarsen))} & set(domains[-1].names)
    return Engineering(tuple(domains), steps, joined(all_zeros), free, frozenset(lonely))


def _behind(step: Step, domain: Domain) -> Domain:
    """The domain after a step: what it gives stands where the first column stood that it takes."""
    for name in (*step.takes, *step.reads):
        if name not in domain:
            fix = "each column in one step; a derived column in none"
            raise UserError(f"column {name!r} is taken by another step, or unknown", where=step.rule, fix=fix)
    columns: list[Any] = []
    for attribute in domain.attributes:
        if attribute.name == step.takes[0]:
            columns += step.gives
        elif attribute.name not in step.takes:
            columns.append(attribute)
    if not columns:
        raise UserError("no column is left to measure", where=step.rule, fix="a column that follows from no other")
    names = [a.name for a in columns]
    twice = next((a.name for a in step.gives if names.count(a.name) > 1), None)
    if twice is not None:
        raise UserError(f"{twice!r} is the name of a column", where=step.rule, fix="another name")
    return Domain(tuple(columns))


def _combinations(steps: tuple[Step, ...], domains: list[Domain]) -> list[Zeros]:
    """The combinations that a recoding leaves out, as zeros over its columns."""
    combinations = []
    for step, before in zip(steps, domains, strict=False):
        if isinstance(step, Recode) and step.cells.size < step.place.size <= MAX_COMBINATIONS:
            cells = np.ones(step.place.size, np.bool_)
            cells[step.cells] = False
            combinations.append((before.canonical(step.takes), cells))
    return combinations


def engineer(
    coded: CodedTable, plan: Engineering, *, workdir: Path | None = None
) -> tuple[CodedTable, Mapping[str, int]]:
    """Rows of the table as rows of the measured domain, and how many contradict each rule. Not private.

    Each row is changed by public rules alone and stays in its place, with its weight.

    Args:
        workdir: where new columns go (they are mapped); None: in memory.

    Raises:
        UserError: a row contradicts a rule with conflict: refuse; quotes no value.
    """
    conflicts = {step.rule: 0 for step in plan.steps}
    new_names = {a.name for step in plan.steps for a in step.gives}
    names = [n for n in plan.measured.names if n not in plan.domains[0] or n in new_names]
    buffers = {n: _room(workdir, i, coded.rows, plan.measured[n].size) for i, n in enumerate(names)}
    for start in range(0, coded.rows, CHUNK):
        stop = min(start + CHUNK, coded.rows)
        codes = {n: np.asarray(coded.column(n)[start:stop]) for n in coded.domain.names}
        for step in plan.steps:
            new, misfit = step.forward(codes)
            count = 0 if misfit is None else int(np.count_nonzero(misfit))
            conflicts[step.rule] += count
            refuse_conflicts(plan, conflicts)
            codes = {n: c for n, c in codes.items() if n not in step.takes} | new
        for name in names:
            buffers[name][start:stop] = codes[name]
    columns = tuple(buffers[n] if n in buffers else coded.column(n) for n in plan.measured.names)
    return CodedTable(plan.measured, columns, coded.weights), conflicts


def refuse_conflicts(plan: Engineering, conflicts: Mapping[str, int]) -> None:
    """Refuse rows that contradict a rule which refuses them.

    Raises:
        UserError: a row does; quotes no value.
    """
    for step in plan.steps:
        if conflicts[step.rule] and step.conflict == "refuse":
            fix = "mend the table or the rule; or conflict: mapping, which lets the rule win"
            raise UserError("a row contradicts the rule", where=f"schema: {step.rule}", fix=fix)


def _room(workdir: Path | None, place: int, rows: int, size: int) -> NDArray[Any]:
    if workdir is None or rows == 0:
        return np.empty(rows, code_dtype(size))
    workdir.mkdir(mode=0o700, parents=True, exist_ok=True)
    return np.memmap(workdir / f"{place:04}.codes", dtype=code_dtype(size), mode="w+", shape=(rows,))


def undo(synthetic: CodedTable, plan: Engineering, rng: np.random.Generator) -> CodedTable:
    """Synthetic rows of the measured domain as rows of the table's columns; no row breaks a rule.

    Guarantee: post-processing; costs no privacy.
    Raises:
        UserError: the structural zeros leave no row possible.
    """
    if not plan.steps and not plan.free:
        return synthetic
    codes = {n: np.array(synthetic.column(n)) for n in synthetic.domain.names}
    for step in reversed(plan.steps[plan.derived :]):
        codes |= step.backward(codes, rng)
        gone = {a.name for a in step.gives} - set(step.takes)
        codes = {n: c for n, c in codes.items() if n not in gone}
    mend(codes, plan.domains[plan.derived], plan.free, rng)
    for step in reversed(plan.steps[: plan.derived]):
        codes |= step.backward(codes, rng)
    table = plan.domains[0]
    return CodedTable(
        table, tuple(codes[a.name].astype(code_dtype(a.size)) for a in table.attributes), synthetic.weights
    )
