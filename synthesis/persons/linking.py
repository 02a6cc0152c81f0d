"""Records linked into persons: a start from noisy answers about persons, then swaps that bring it nearer to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.persons.person_questions import Trait, person_questions
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.persons.tally import WHOLE, Codes, Persons, Sheet, by_question, sheet_of, stacked, tally
from mechanisms.public.progress import Progress
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.rules.structural_zeros import Zeros
from mechanisms.public.schema.column import Column
from synthesis.persons.allowed import Rule, bans_of, brought
from synthesis.persons.arrangement import Goals, Links, Undo, cost_of, links_of
from synthesis.persons.opening import (
    deal,
    drawn_cells,
    drawn_constants,
    drawn_levels,
    gap_edges,
    planned_times,
    stays,
    tokens_of_slots,
)
from synthesis.persons.person_sizes import persons_by_size
from synthesis.persons.person_targets import Asked, PersonTarget, answered, targets_of
from synthesis.persons.swaps import Aims, sweep

#: Proposals per record.
SWEEPS = 32
#: The rest of the sweeps is left out when one lowers the cost by less than this share.
SETTLED = 1e-4
#: Levels that correlate less are drawn each for itself.
LEAST_CORRELATION = 0.2
#: So many neighbouring cells are one wider cell.
BLOCK = 4
#: Gaps that are looked for are drawn so often.
GAPS = 4096


@dataclass(frozen=True, eq=False)
class Linked:
    """Records by person.

    Attributes:
        members: (records,) rows in the order written: those of the first person in their order, then the second's, …
        starts: (persons + 1,) where each person's begin in `members`.
        time_of: (records,) the row whose time each row takes: a permutation within the codes of the time's column.
        constants: (constants, persons) codes, in the order of `unit.constant`.
        costs: before the first sweep, and after each.
        notes: in sentences, how many persons got constants anew, and how many records persons, by rules that name them.
    """

    members: Ints
    starts: Ints
    time_of: Ints
    constants: Codes
    costs: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()


def linked_persons(
    table: CodedTable,
    times: Ints,
    unit: PersonUnit,
    columns: Sequence[Column],
    answers: Sequence[NoisyMarginal],
    zeros: Sequence[Zeros] = (),
    *,
    seed: int,
    sweeps: int = SWEEPS,
    progress: Progress | None = None,
) -> Linked:
    """The records of a table as those of persons who fit noisy answers; no record is changed, none is lost.

    A time may go to another record of the same code in the time's column, so that every marginal of codes stays.

    Args:
        table: codes of the schema's columns; those of constants are not read.
        times: (records,) whole times as of `times_of`; −1 for none.
        answers: to the questions of `person_questions`, under their labels; those that were lost are missing.
        zeros: which records a person may not hold, by its constants (see `of_persons`); it holds none of them.
        seed: the same one gives the same bytes.
        sweeps: proposals per record, at most.

    Cost: 3 to 4 µs a proposal where persons have ten records, more with more questions; about 200 bytes a record.
    """
    by_name, rng = {c.name: c for c in columns}, np.random.default_rng(seed)
    time = unit.times(by_name)
    bins = np.zeros(times.size, np.int32) if time is None else table.column(time.name).astype(np.int32)
    asked = answered(person_questions(unit, columns), answers, by_name, zeros)
    by_size = persons_by_size(asked, unit.max_records, times.size)
    sizes = rng.permutation(np.repeat(np.arange(1, by_size.size + 1), by_size))
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    constants = drawn_constants(asked, unit.constant, [by_name[n].size for n in unit.constant], sizes.size, rng)
    token_rows = np.lexsort((times, bins))
    world = _World(table, times, unit, bins, starts, constants, token_rows, zeros)
    targets = targets_of(asked, by_size, world.counts_of(asked, rng))
    for target in (t for t in targets if zeros and t.asked.kinds() == (Trait.RECORDS, Trait.CONSTANT)):
        of_size, constant = target.asked.question.features
        groups, rows = np.array(of_size.groups)[sizes - 1], target.goal.reshape(target.asked.values.shape)
        constants[unit.constant.index(constant.column)] = drawn_cells(rows, groups, rng)
    world, links, room, goals, aims = _opened(world, targets, by_name, rng)
    costs = _descended(links, room, goals, aims, rng, sweeps, progress)
    for row, name in enumerate(sheet_of([t.asked.question for t in targets]).constants):
        world.constants[unit.constant.index(name)] = links.constants[row]
    time_of = np.asarray(token_rows[links.tokens], np.int64)
    return Linked(links.members, world.starts, time_of, world.constants, costs, world.notes)


@dataclass(frozen=True, eq=False)
class _World:
    """The records and the persons that are to hold them."""

    table: CodedTable
    times: Ints
    unit: PersonUnit
    bins: Codes
    starts: Ints
    constants: Codes
    token_rows: Ints
    zeros: Sequence[Zeros]
    notes: tuple[str, ...] = ()

    def persons(self, members: Ints, times: Ints, sheet: Sheet) -> Persons:
        """An arrangement as what tallies count: (records,) who stands where, and the time that each record holds."""
        fixed = [self.constants[self.unit.constant.index(name)] for name in sheet.constants]
        return Persons(
            stacked([self.table.column(name) for name in sheet.columns], members.size),
            times,
            np.array(fixed, np.int32).reshape(len(fixed), self.starts.size - 1),
            members,
            self.starts,
        )

    def counts_of(self, asked: Sequence[Asked], rng: np.random.Generator) -> list[Floats]:
        """Of each question the counts, in persons, of records dealt at random."""
        if not asked:
            return []
        owners = np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))
        ranks = np.empty(self.times.size, np.int64)
        ranks[self.token_rows] = np.arange(self.times.size)
        members = rng.permutation(self.times.size)
        members = members[np.lexsort((ranks[members], owners))]
        sheet = sheet_of([a.question for a in asked])
        counts = tally(self.persons(members, self.times, sheet), sheet)
        return [part / WHOLE for part in by_question(counts, [a.question for a in asked])]


def _opened(
    world: _World, targets: Sequence[PersonTarget], columns: dict[str, Column], rng: np.random.Generator
) -> tuple[_World, Links, Undo, Goals, Aims]:
    """The first arrangement, and all that the sweeps need."""
    records, sizes, time = world.times.size, np.diff(world.starts), world.unit.times(columns)
    token_times = world.times[world.token_rows]
    dated = int((token_times >= 0).sum())
    widest = 0 if time is None else int(world.bins.max(initial=0))
    bin_begins = np.searchsorted(world.bins[world.token_rows], np.arange(widest + 2)).astype(np.int64)
    same = [t.asked.question.features[1].column for t in targets if Trait.SAME in t.asked.kinds()]
    means = sorted((t for t in targets if Trait.MEAN in t.asked.kinds()), key=lambda t: -t.signal)
    level_names = [t.asked.question.features[1].column for t in means]
    likes = list(dict.fromkeys([*same, *level_names]))
    groups = _groups(targets, sizes)
    levels = _levels(world, [columns[name] for name in level_names])
    tokens = tokens_of_slots(
        planned_times(targets, world.starts, groups, time, token_times[:dated], rng), world.starts, dated, rng
    )
    slot_of_token = np.empty(records, np.int64)
    slot_of_token[tokens] = np.arange(records)
    sheet = sheet_of([t.asked.question for t in targets])
    stay = world.table.column(same[0]).astype(np.int32) if same else np.zeros(records, np.int32)
    staying = stays(targets, same[0] if same else "", token_times[tokens], world.starts, groups, rng)
    members, state = np.zeros(records, np.int64), np.array([rng.integers(1, 2**63)], np.uint64)
    owners = np.repeat(np.arange(sizes.size), sizes)
    bans = bans_of(world.zeros, world.table, world.unit.constant, world.constants)
    drawn = drawn_levels(means, groups, _signs(levels), rng)
    if world.zeros:  # of what a person may hold, first what few others may
        levels, drawn = (
            np.column_stack([levels, bans.shares()]),
            np.column_stack([drawn, np.zeros(sizes.size)]),
        )
    deal(
        members, slot_of_token, owners, world.bins, bin_begins, stay, columns[same[0]].size if same else 1,
        levels, staying, drawn, bans, state,
    )  # fmt: skip
    if world.zeros and records:
        codes = [columns[n].size for n in world.unit.constant]
        rules, bound = [Rule(bans, i, codes) for i in range(len(bans.strides))], world.unit.bound
        bans, constants, starts, order, notes = brought(rules, bans, world.constants, members, world.starts, bound, rng)
        world = replace(world, starts=starts, constants=constants, notes=notes)
        order = order[np.lexsort((tokens[order], np.repeat(np.arange(starts.size - 1), np.diff(starts))))]
        members, tokens = members[order], tokens[order]
    own_tokens, own_times = np.empty(records, np.int64), np.empty(records, np.int64)
    own_tokens[members], own_times[members] = tokens, token_times[tokens]
    goals = _goals(targets, sheet, world, np.diff(world.starts))
    rows = [world.unit.constant.index(name) for name in sheet.constants]
    bans = bans._replace(strides=np.ascontiguousarray(bans.strides[:, rows]))
    links, room = links_of(world.persons(members, own_times, sheet), own_tokens, sheet, goals, bans)
    places = [sheet.columns.index(name) for name in likes]
    aims = _aims(world, goals, places, likes, columns, bin_begins, token_times, dated, _gaps(targets, time, rng))
    return world, links, room, goals, aims


def _levels(world: _World, columns: Sequence[Column]) -> Floats:
    """(records, columns) codes of values as parts of them all; 2 for none, which is far from every value."""
    levels = np.full((world.times.size, len(columns)), 2.0)
    for row, column in enumerate(columns):
        codes = world.table.column(column.name)
        levels[:, row] = np.where(codes < column.value_codes, (codes + 0.5) / column.value_codes, 2.0)
    return levels


def _signs(levels: Floats) -> list[float]:
    """Of each level's correlation with the first one: 1, −1, or 0 below LEAST_CORRELATION."""
    signs = []
    for column in levels.T:
        valued = (column < 2) & (levels[:, 0] < 2)
        one, other = levels[valued, 0], column[valued]
        spread = one.std() * other.std() if one.size else 0.0
        correlation = float(np.mean((one - one.mean()) * (other - other.mean())) / spread) if spread > 0 else 0.0
        signs.append(float(np.sign(correlation)) if abs(correlation) >= LEAST_CORRELATION else 0.0)
    return signs


def _groups(targets: Sequence[PersonTarget], sizes: Ints) -> Ints:
    """The group of each person's size, as the questions about records have it: those about constants have fewer."""
    moving = (t.asked.question for t in targets if t.asked.by_size and Trait.CONSTANT not in t.asked.kinds())
    by_size = next((q.features[0] for q in moving), None)
    return np.zeros(sizes.size, np.int64) if by_size is None else np.array(by_size.groups, np.int64)[sizes - 1]


def _goals(targets: Sequence[PersonTarget], sheet: Sheet, world: _World, sizes: Ints) -> Goals:
    """Targets and weights of all cells, and of wider ones: what is off by little in many cells is off in their sum."""
    cells = sum(t.goal.size for t in targets)
    goals, within = [np.zeros((2, 0))], np.full((cells, 3), cells)  # one more cell, for what lies in no wider one
    for kind, wide_of in enumerate((lambda _, c: c, _blocks, _all_sizes)):
        first = 0
        for target in targets:
            own = np.indices(target.asked.values.shape).reshape(target.asked.values.ndim, -1)
            wide = wide_of(target.asked, own)
            if kind == 0 or (wide != own).any():
                number = np.unique(wide, axis=1, return_inverse=True)[1].ravel()
                within[first : first + number.size, kind] = number + sum(g.shape[1] for g in goals)
                goals.append(_weighed(target, number, sizes))
            first += target.goal.size
        goals += [np.zeros((2, 1))] * (kind == 0)
    targets_of_cells, weights = np.concatenate(goals, axis=1)
    codes = world.persons(np.zeros(world.times.size, np.int64), world.times, sheet).codes
    return Goals(sheet.layout, codes, targets_of_cells * WHOLE, weights / WHOLE**2, within)


def _blocks(asked: Asked, cells: Ints) -> Ints:
    """The same cells, so many neighbours on a line as one."""
    wide = cells.copy()
    for axis, line in enumerate(asked.lines(), start=int(asked.by_size)):
        wide[axis] = np.where(cells[axis] < line, cells[axis] // BLOCK, cells[axis])
    return wide


def _all_sizes(asked: Asked, cells: Ints) -> Ints:
    """The same cells, whatever the number of records."""
    wide = cells.copy()
    wide[0] *= not asked.by_size
    return wide


def _weighed(target: PersonTarget, number: Ints, sizes: Ints) -> Floats:
    """(2, cells) wanted counts and weights: one over the variance, more for groups of persons with many records.

    Args:
        number: the cell in which each cell of the question counts.
    """
    asked, part = target.asked, np.ones(target.goal.size)
    if asked.by_size:
        rows, groups = asked.values.shape[0], np.array(asked.question.features[0].groups)[sizes - 1]
        mean = np.bincount(groups, sizes, rows) / np.maximum(np.bincount(groups, minlength=rows), 1)
        part = np.repeat(mean / max(sizes.sum() / max(sizes.size, 1), 1), part.size // rows)
    share = target.goal + 1e-9
    goals, variance = (
        np.bincount(number, share),
        np.bincount(number, np.maximum(target.variance, asked.stddev**2 / 8)),
    )
    return np.array([goals, np.bincount(number, part * share) / goals / (variance / 4 + 1 + goals / 200)])


def _gaps(targets: Sequence[PersonTarget], time: Column | None, rng: np.random.Generator) -> Ints:
    """Times between records, as often as they are wanted."""
    target = next((t for t in targets if Trait.GAP in t.asked.kinds()), None)
    if target is None or time is None:
        return np.zeros(0, np.int64)
    cells = target.goal.reshape(-1, target.asked.values.shape[-1]).sum(axis=0)[:-1]
    if not cells.sum() > 0:  # also where one of both times is missing in all
        return np.zeros(0, np.int64)
    edges = gap_edges(time).astype(np.int64)
    cell = rng.choice(cells.size, GAPS, p=cells / cells.sum())
    return np.asarray(edges[cell] + (rng.random(GAPS) * (edges[cell + 1] - edges[cell])).astype(np.int64))


def _aims(
    world: _World, goals: Goals, places: Sequence[int], names: Sequence[str], columns: dict[str, Column],
    bin_begins: Ints, token_times: Ints, dated: int, gaps: Ints,
) -> Aims:  # fmt: skip
    """Records by bin of time and code, for each column in which neighbours may be alike."""
    sizes = [columns[name].size for name in names]
    begins, offsets, rows, first = [], [], [], 0
    for place, size in zip(places, sizes, strict=True):
        keys = world.bins.astype(np.int64) * size + goals.codes[place, : world.bins.size]
        rows.append(np.argsort(keys, kind="stable").astype(np.int32))
        begins.append(np.concatenate(([0], np.cumsum(np.bincount(keys, minlength=(bin_begins.size - 1) * size)))))
        offsets.append(first)
        first += begins[-1].size
    return Aims(
        world.bins, bin_begins, token_times, dated, np.array(places, np.int64), np.array(sizes, np.int64),
        np.array(offsets, np.int64), np.concatenate(begins).astype(np.int64) if begins else np.zeros(1, np.int64),
        np.array(rows, np.int32).reshape(len(rows), world.times.size), gaps,
    )  # fmt: skip


def _descended(
    links: Links,
    room: Undo,
    goals: Goals,
    aims: Aims,
    rng: np.random.Generator,
    sweeps: int,
    progress: Progress | None,
) -> tuple[float, ...]:
    """Sweep until little is gained; returns the costs."""
    state = np.array([rng.integers(1, 2**63)], np.uint64)
    costs = [cost_of(goals, links.counts)]
    for done in range(sweeps if len(goals.targets) and len(aims.bins) else 0):
        fell = float(sweep(goals, links, room, aims, state))
        costs.append(costs[-1] - fell)
        if progress is not None:
            progress(done + 1, sweeps, "sweeps over the records")
        if fell <= SETTLED * costs[-2]:  # also where nothing is left to gain
            break
    return tuple(costs)
