"""Hints on relations of a person's record to the next one, which no rule keeps. NOT private: for the operator."""

from __future__ import annotations

import itertools

import numpy as np

from mechanisms.public.arrays import Flags, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.drafts.order_guess import ASCENDING
from mechanisms.public.drafts.rule_guess import FEWEST_ROWS, is_amount, is_listed
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.schema.table_schema import Schema

#: A number that hardly ever falls rises in at least this share of the steps; unrelated states differ in as many.
RISING = 0.1
#: A constant is the number of a person's records where it is so in this share of the persons with several.
COUNTED = 0.9
#: Pairs of columns are looked at in so many records.
MOST = 1 << 17
#: The rows, person by person and in order; and whether the row behind each of these is of the same person.
Following = tuple[Ints, Flags]


def steps_look(
    schema: Schema, declared: PersonUnit, coded: CodedTable, owners: Ints, following: Following
) -> list[str]:
    """Numbers that never fall, states that are handed on, and values that no person has twice."""
    hints = _never_falling(schema, declared, coded, following) + _handed_on(schema, declared, coded, following)
    return hints + _never_twice(schema, declared, coded, owners)


def sizes_look(schema: Schema, declared: PersonUnit, coded: CodedTable, owners: Ints) -> list[str]:
    """Constants that say how many records a person has, as the size of a household: a release has another number."""
    _, first, sizes = np.unique(owners, return_index=True, return_counts=True)
    hints, several = [], sizes > 1
    for column in (schema[n] for n in declared.constant if schema[n].discover is None):
        numbers = np.array([int(label) if label.isdecimal() else -1 for label in column.labels] + [-1] * column.size)
        same = int((numbers[np.asarray(coded.column(column.name))[first]] == sizes)[several].sum())
        if same >= max(COUNTED * several.sum(), FEWEST_ROWS):
            hints.append(
                f"unit: constant: {column.name!r} is the number of records of {same:,} of {several.sum():,} persons "
                "with several; no rule keeps that: leave it out, and count a release's own"
            )
    return hints


def _never_falling(schema: Schema, declared: PersonUnit, coded: CodedTable, following: Following) -> list[str]:
    """Numbers that hardly ever fall from a person's record to the next, by their bins: an age, a meter's reading."""
    order, steps = following
    apart, hints = {*declared.constant, *declared.order, *(s.target for s in schema.rules.computed)}, []
    for column in (c for c in schema.held if c.discover is None and is_amount(c) and c.name not in apart):
        codes = np.asarray(coded.column(column.name)).astype(np.int64)[order]
        both = steps & (np.maximum(codes[:-1], codes[1:]) < column.value_codes)
        change, rows = np.diff(codes)[both], int(both.sum())
        falls, rises = int((change < 0).sum()), int((change > 0).sum())
        if rows >= FEWEST_ROWS and falls <= (1 - ASCENDING) * rows and rises >= RISING * rows:
            hints.append(
                f"unit: order: {column.name!r} falls from one record of a person to the next in {falls:,} of {rows:,} "
                "steps; no rule keeps that, and it may fall in many of a release: a constant that it is computed from "
                "keeps it (of an age the birth date), or the difference from the record before as a column in its place"
            )
    return hints


def _handed_on(schema: Schema, declared: PersonUnit, coded: CodedTable, following: Following) -> list[str]:
    """Columns that say again what another one said in the record before, by their bins: the grade so far.

    The other one may be computed, as the balance behind an amount is; the rule makes no column the one before it.
    """
    order, steps = following[0][:MOST], following[1][: MOST - 1]
    computed, held = {s.target for s in schema.rules.computed}, (c for c in schema.held if c.discover is None)
    columns = [c for c in held if (is_amount(c) or is_listed(c)) and c.name not in declared.constant]
    codes = {c.name: np.asarray(coded.column(c.name)).astype(np.int64)[order] for c in columns}
    hints = []
    for now, before in itertools.permutations(columns, 2):
        if now.name in computed:
            continue
        code_of = {label: code for label, code in before.codes_by_label.items() if code < before.value_codes}
        place = np.array([code_of.get(label, -1) for label in now.labels] + [-1] * now.size)
        if np.count_nonzero(place >= 0) < 2:
            continue
        own, last = place[codes[now.name]], codes[before.name][:-1]
        both = steps & (own[1:] >= 0) & (last < before.value_codes)
        rows, same, stays = (int((which & both).sum()) for which in (both, own[1:] == last, own[1:] == own[:-1]))
        each = (np.bincount(codes_of[both], minlength=before.value_codes) for codes_of in (own[1:], last))
        apart_by_chance = rows - float(np.prod([*each], axis=0).sum()) / max(rows, 1)
        handed = rows - same <= (1 - ASCENDING) * apart_by_chance and apart_by_chance >= RISING * rows
        if rows >= FEWEST_ROWS and handed and stays < ASCENDING * rows:
            cure = "leave it out, and fill it in from the record before"
            if before.name in computed:  # perhaps from the very column
                cure = "leave both out, and compute both from a release's rows, one after the other"
            hints.append(
                f"unit: order: {now.name!r} is {before.name!r} of the person's record before in {same:,} of {rows:,} "
                f"steps; no rule keeps that, and it will differ in many of a release: {cure}"
            )
    return hints


def _never_twice(schema: Schema, declared: PersonUnit, coded: CodedTable, owners: Ints) -> list[str]:
    """Columns of which hardly any person has a value twice, though many would by chance: a study's visits, terms."""
    apart = {*declared.constant, *(name for s in schema.rules.steps if not s.gives for name in s.takes)}
    hints = []
    for column in (c for c in schema.held if c.discover is None and is_listed(c) and c.name not in apart):
        codes = np.asarray(coded.column(column.name)).astype(np.int64)
        has = codes < column.value_codes
        person = np.unique(owners[has], return_inverse=True)[1]
        each = np.bincount(person)
        twice = int(has.sum()) - np.unique(owners[has] * column.size + codes[has]).size
        alike = np.square(np.bincount(codes[has]) / max(has.sum(), 1)).sum() * (each * (each - 1) / 2).sum()
        if alike >= FEWEST_ROWS and twice <= 0.01 * alike:
            cure = "drop what is there twice from the synthetic rows, or make a table of one row per person with "
            cure += "columns for each value"
            first = codes[has].min()
            if column.kind == "integer" and (codes[has] - first < each[person]).mean() >= ASCENDING:
                cure = f"it numbers them from {column.low + first:.0f} on: leave it out, and number a release's own"
            hints.append(
                f"unit: {column.name!r} has the same value in two records of a person {twice:,} times; no rule keeps "
                f"that, and it may have it often in a release: {cure}"
            )
    return hints
