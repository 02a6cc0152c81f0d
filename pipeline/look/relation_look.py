"""Relations of a table's columns: rules that rows break, and what rows keep without a rule. NOT private."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from evaluation.pictures.validity import rows_in_zeros
from mechanisms.public.arrays import Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.drafts.age_guess import guess_ages
from mechanisms.public.drafts.metadata.metadata_files import as_json
from mechanisms.public.drafts.mixed_guess import guess_mixed
from mechanisms.public.drafts.never_guess import Never, Skipped, guess_dependent
from mechanisms.public.drafts.order_guess import (
    ASCENDING,
    EQUAL,
    apart_in_words,
    ascending_numbers,
    ascending_rows,
    guess_ordered,
    guess_times,
    in_groups,
    in_lengths,
    past_midnight,
    rows_in_words,
    spans,
    spans_of,
)
from mechanisms.public.drafts.rule_guess import (
    FEWEST_ROWS,
    guess_calendar,
    guess_derived,
    guess_parts,
)
from mechanisms.public.errors import UserError, first_few
from mechanisms.public.rules.computed import length_name
from mechanisms.public.rules.engineering import engineer
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.losses import percent
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.value_summaries import rows_that_differ, value_batches

#: Rows of which codes are read at once, and values that a rule of one line names.
BATCH, MOST_NAMED = 1 << 17, 6
#: Said of a relation that no rule keeps.
NO_RULE = "and only a rule keeps it"


def unruled_relations(source: Source, schema: Schema, coded: CodedTable, unread: Collection[str]) -> list[str]:
    """Columns that ascend, follow or are skipped, and dates with their weekdays or hours, where no rule says so.

    Args:
        unread: columns of which much cannot be read, and became missing: of these nothing tells when they are empty.
    """
    rules = schema.rules
    apart, constants = {step.target for step in rules.computed}, rules.unit.constant if rules.unit else ()
    measured = (c for c in schema.held if c.discover is None and not (c.constant or c.unmeasured))
    columns = {c.name: c for c in measured if c.name not in apart}
    needed = {n for rule in rules.calendar for n in (rule.time, *rule.columns.values())} | {*constants}
    needed |= {*rules.unit.order} if rules.unit else set()  # no rule may compute them
    computed = guess_derived(source, columns, needed)
    texts = [*((step.target, step.expression.text) for step in rules.computed), *(own[:2] for own in computed)]
    whole = {c.name for c in schema.columns if c.kind == "integer"}  # `ordered` takes columns of one kind
    dates = spans(own for own in texts if schema[own[0]].kind in DATE_KINDS)
    later = {name: span for name, span in dates.items() if span[1] in whole}
    free = {n: c for n, c in columns.items() if n not in {c for c, *_ in computed}}
    ordered, alike = guess_ordered(source, free | {n: schema[n] for n in later})
    varied = {n: c for n, c in columns.items() if n not in constants}  # with others' bins no rule orders constants
    bound = [o for o in ordered if not {*o[:2]} <= varied.keys() | later.keys()]
    ordered = [o for o in ordered if o not in bound or schema[o[0]].labels == schema[o[1]].labels]
    pairs, alike = ([o for o in own if {*o[:2]} <= free.keys()] for own in (ordered, alike))
    every = {o[:2] for o in pairs} | {own for group in rules.ordered for own in group.pairs}
    lengths, days = guess_times(source, columns, sorted(every), needed)
    ordered = in_lengths(ordered, later | spans_of(lengths))
    tied = [*_mapped_pairs(schema), *({*rule.columns} for rule in rules.ordered)]
    hints = [
        f"{name!r} is {f'the day of {text!r}' if text in columns else text} {words}, {NO_RULE}: "
        f"derive: {as_json({name: {'expression': text}})}"
        for name, text, words in computed
    ]
    hints += [
        f"{' ≤ '.join(map(repr, group))} {rows_in_words(group, up, both)}, {NO_RULE}: ordered: {as_json([group])}"
        for group, up, both in in_groups([pair for pair in ordered if not any({*pair[:2]} <= own for own in tied)])
    ]
    hints += _nearly_ascending(source, {n: c for n, c in free.items() if n in varied}, [{*o[:2]} for o in pairs] + tied)
    hints += [*(apart_in_words(*pair) for pair in days), *past_midnight(source, columns, [*every, *alike]).values()]
    asked = guess_ages(source, free) | guess_mixed(source, free)
    hints += [f"{name!r}: {words}" for name, words in asked.items()]
    hints += [f"{one.between}: {one.in_words}: derive: {as_json(one.rule)}, in place of `ordered`" for one in lengths]
    hints += [
        f"{a!r} and {b!r} are the same in {same:,} of the {both:,} rows that hold both: is one of the two enough?"
        for a, b, same, both in alike
    ]
    taken = {name for step in rules.steps for name in step.takes}
    listed = [c for n, c in columns.items() if (n not in taken or n in constants) and n not in unread]
    dependent = guess_dependent(listed, partial(_code_batches, coded))
    hints += [
        f"{one.target!r} follows from {one.source!r} in {one.follows:,} of the {one.rows:,} rows that tell, {NO_RULE}: "
        "derive or impossible, as a draft writes it"
        for one, own in ((one, schema[one.source]) for one in dependent.follows)
        if (one.gaps or schema[one.target].kind == "integer" or own.value_codes > schema[one.target].value_codes)
        and not _ruled(schema, one.source, one.target)
    ]
    of_length = {one.later for one in lengths}
    hints += _skipped(schema, dependent.skipped, of_length)
    hints += _never(schema, dependent.never, of_length)
    return hints + _calendar(source, schema, varied)


def _nearly_ascending(source: Source, columns: Mapping[str, Column], tied: Sequence[Collection[str]]) -> list[str]:
    """Numbers that ascend in nearly all rows, of which a draft makes no rule, where no rule ties them."""
    pairs = ascending_numbers(source, columns, mostly=True)
    free = [(a, b) for a, b in pairs if not any({a, b} <= {*own} for own in tied)]
    return [
        f"{a!r} ≤ {b!r} in {percent(up / both)} of the {both:,} rows that hold both, and a release breaks it in many "
        f"more: are the others mistakes? ordered: {as_json([[a, b]])} keeps it in all rows"
        for (a, b), (both, up, same) in ascending_rows(source, columns, free).items()
        if both >= FEWEST_ROWS and up >= ASCENDING * both and same <= EQUAL * both
    ]


def _calendar(source: Source, schema: Schema, varied: Mapping[str, Column]) -> list[str]:
    """Dates and times whose weekdays or hours no rule keeps, of columns that no constant of persons is."""
    rules = schema.rules
    ruled = {(rule.time, part) for rule in rules.calendar for part in rule.columns}
    instead = dict.fromkeys((n for group in rules.ordered for n in group.columns), ", in place of `ordered`")
    held, both, _ = guess_calendar(source, varied, ASCENDING)
    parts = guess_parts(source, varied, held | {rule.time: rule.columns for rule in rules.calendar})
    hints = [
        f"{time!r}: a release spreads it evenly inside each bin, and the table does not ({' and '.join(own)}): "
        f"calendar: {as_json({time: rule})}"
        f"{', with bins: month' if bins else ''}{instead.get(time, '')}"
        for time, (own, rule, bins) in parts.items()
    ]
    short = {name for name, column in varied.items() if (column.low, column.high) != (0, 23)}
    return hints + [
        f"{name!r} is the {part} of {time!r} in {both[time, name][0]:,} of {both[time, name][1]:,} rows, {NO_RULE}: "
        f"calendar: {as_json({time: {part: name}})}{', with min: 0, max: 23' * (part == 'hour' and name in short)}"
        for time, parts_held in held.items()
        for part, name in parts_held.items()
        if (time, part) not in ruled
    ]


def _mapped_pairs(schema: Schema) -> list[set[str]]:
    """Each column that a map makes of one other, with that one: a rule about either binds both."""
    return [{*s.takes, *s.reads} for s in schema.rules.steps if not s.gives and len(s.reads) == 1]


def _ruled(schema: Schema, *columns: str) -> bool:
    """Whether a rule about combinations binds all of these columns."""
    mapped = _mapped_pairs(schema)
    return any({*columns} <= {*clique}.union(*(m for m in mapped if m & {*clique})) for clique, _ in schema.rules.zeros)


def _code_batches(coded: CodedTable, columns: Sequence[Column]) -> Iterator[dict[str, Ints]]:
    for first in range(0, coded.rows, BATCH):
        part = slice(first, first + BATCH)
        yield {c.name: np.asarray(coded.column(c.name)[part]).astype(np.int64) for c in columns}


def _skipped(schema: Schema, skipped: Sequence[Skipped], later: Collection[str]) -> list[str]:
    """Columns that are empty, or 0, where another has certain values, by these values; no rule says so.

    Args:
        later: of which `derive` shall measure a length: a rule names that.
    """
    alike: dict[tuple[str, tuple[str | None, ...], str], list[Skipped]] = defaultdict(list)
    for one in (o for o in skipped if not _ruled(schema, o.source, o.target)):
        alike[one.source, one.at, one.word].append(one)
    hints = []
    for (source, at, word), own in alike.items():
        values = first_few([v or "nothing" for v in at] or ["any value"])
        short = len(own) == 1 and len(at) <= MOST_NAMED
        rule = _impossible(own[0].rule, later) if short else "impossible, as a draft writes it"
        hints.append(
            f"{first_few(repr(o.target) for o in own)}: {word} in at least {min(o.empty for o in own):,} of the "
            f"{own[0].rows:,} rows with {source!r} = {values}, {NO_RULE}: {rule}"
        )
    return hints


def _never(schema: Schema, exclude: Sequence[Never], later: Collection[str]) -> list[str]:
    """Values that never stand together, or beside an empty cell; no rule says so."""
    return [
        f"{one.source!r} and {one.target!r}: some values stand together {one.in_words}, {NO_RULE}: "
        f"{_impossible(one.rule, later)}"
        for one in exclude
        if not _ruled(schema, one.source, one.target)
    ]


def _impossible(rule: Mapping[str, object], later: Collection[str]) -> str:
    """The rule as a schema has it: of times of which a length is proposed it names that."""
    named = {length_name(n) if n in later else n: never for n, never in rule.items()}
    beside = "".join(f", beside `derive` of {n!r}" for n in rule if n in later)
    return f"impossible: [{as_json(named)}]{beside}"


def one_to_one(schema: Schema, coded: CodedTable) -> list[str]:
    """Pairs of columns of texts of which each tells the other: as many rows per value, and per pair of values."""
    alike: dict[tuple[int, ...], list[Column]] = defaultdict(list)
    constants = schema.rules.unit.constant if schema.rules.unit else ()
    derived = {name for step in schema.rules.steps if not step.gives for name in step.takes} - {*constants}
    for column in schema.columns:
        if column.kind in {"categorical", "flag"} and not column.constant and column.name not in derived:
            counts = np.bincount(np.asarray(coded.column(column.name)), minlength=column.size)
            filled = np.sort(counts[counts > 0])
            if filled.size > 1:
                alike[tuple(filled.tolist())].append(column)
    hints = []
    for first, *others in alike.values():
        own = np.asarray(coded.column(first.name)).astype(np.int64)
        for other in others:
            pairs = np.unique(own * other.size + np.asarray(coded.column(other.name)))
            if pairs.size == np.unique(own).size and not _ruled(schema, first.name, other.name):
                cure = f"derive: {{{other.name}: {{from: {first.name}, map: …}}}} measures one of them"
                if {first.name, other.name} & {*constants}:
                    cure = f"impossible: [{{columns: [{first.name}, {other.name}], possible: …}}] keeps that"
                sentence = f"{first.name!r} and {other.name!r} tell each other in every row: if that is public, {cure}"
                hints.append(f"{sentence}; or leave one out")
    return hints


def broken(source: Source, schema: Schema, coded: CodedTable) -> list[str]:
    """Rules about rows that cannot be, which rows break."""
    zeros = rows_in_zeros(schema.rules, schema.domain, coded) if coded.rows else []
    shares = [(rule, share, " (by their bins)") for rule, share in zeros if rule.startswith("impossible")]
    others = (*_descending(source, schema, coded.rows), *_off_calendar(source, schema, coded))
    shares += [(rule, share, "") for rule, share in others]
    return [
        f"{rule}: {percent(share)} of the rows break it{how}, and no synthetic row will: is the rule right, and does "
        "each name of a column stand above its own values?"
        for rule, share, how in shares
        if share
    ]


def _descending(source: Source, schema: Schema, rows: int) -> list[tuple[str, float]]:
    """Each pair of columns that ascend by a rule, and the share of the rows in which their values descend."""
    pairs = [pair for group in schema.rules.ordered for pair in group.pairs]
    each = ascending_rows(source, {c.name: c for c in schema.columns}, pairs)
    return [(f"{a} ≤ {b}", (both - up) / max(rows, 1)) for (a, b), (both, up, *_) in each.items()]


def _off_calendar(source: Source, schema: Schema, coded: CodedTable) -> list[tuple[str, float]]:
    """Each date or time with a weekday or hour of its own, and the share of the rows in which they differ."""
    shares = []
    for rule in schema.rules.calendar:
        batches = value_batches(source, [schema[rule.time]])
        times = np.concatenate([np.empty(0), *(batch[rule.time] for batch in batches)])
        count = rule.differ(times, {n: coded.column(n) for n in rule.columns.values()}).sum()
        shares.append((f"calendar {rule.time!r} (from Monday, from midnight)", count / max(coded.rows, 1)))
    return shares


def conflicts(source: Source, coded: CodedTable, schema: Schema, workdir: Path) -> list[str]:
    """Rows that contradict a step of the schema."""
    if not schema.engineering.steps:
        return []
    try:
        _, conflicts = engineer(coded, schema.engineering, workdir=workdir / "engineered")
    except UserError as error:
        return [f"{error.where}: {error.what}; a run would be refused"]
    differ = rows_that_differ(source, schema)
    both = ((conflicts, "contradict it, and take what it says"), (differ, "hold another value than it says"))
    return [f"{rule}: {percent(k / coded.rows)} of the rows {do}" for own, do in both for rule, k in own.items() if k]
