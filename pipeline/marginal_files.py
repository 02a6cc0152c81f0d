"""The marginals of a release as CSV files: one per marginal, and an index."""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
import pandas as pd

from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError, known_columns
from mechanisms.public.release import Measurements
from mechanisms.public.schema.code_labels import code_names
from mechanisms.public.schema.table_schema import Schema
from synthesis.marginal_tables import marginal_tables

#: Columns that are made by synthesis and by draws: another version of a library may round them in another way.
ESTIMATED = ("consistent", "consistent_standard_error")
INDEX = "index.csv"


def marginal_frames(schema: Schema, measurements: Measurements) -> dict[str, pd.DataFrame]:
    """File → every marginal that was measured whole: a line per cell, noisy and consistent counts with standard errors.

    The index is the last one.

    Guarantee: post-processing of the measurements; costs no privacy.
    """
    frames, rows = {}, []
    for number, table in enumerate(marginal_tables(measurements)):
        name = f"{number:04d}_{_safe('_'.join(table.clique))}.csv"
        frame = cells_frame(schema, table.clique)
        frames[name] = _without_clash(frame).assign(
            noisy=np.round(table.noisy.ravel(), 3),
            noisy_standard_error=round(table.noisy_error, 3),
            consistent=np.round(table.consistent.ravel(), 3),
            consistent_standard_error=np.round(table.consistent_error.ravel(), 3),
        )
        rows.append((name, " × ".join(table.clique), len(frame), round(table.noisy_error, 3)))
    frames[INDEX] = pd.DataFrame(rows, columns=["file", "marginal", "cells", "noisy_standard_error"])
    return frames


def cells_frame(schema: Schema, clique: Clique) -> pd.DataFrame:
    """One row per cell of a marginal, in C order: the label of each attribute's code."""
    codes = np.unravel_index(np.arange(schema.measured.cells(clique)), schema.measured.shape(clique))
    return pd.DataFrame({n: np.array(_distinct(schema, n), object)[c] for n, c in zip(clique, codes, strict=True)})


def as_a_column(schema: Schema, name: str) -> bool:
    """Whether a measured attribute is a column of the table as it stands, untouched by rules of the schema."""
    return name in schema.domain and name in schema.measured and schema.domain[name] == schema.measured[name]


def check_columns(schema: Schema, where: str, names: Collection[str]) -> None:
    """UserError for names that are no columns of the table, or of which records were not counted as they stand."""
    known_columns(names, schema.domain.names, where=where, of="")
    for name in names:
        if as_a_column(schema, name):
            continue
        fix = "score the synthetic table, or ask about the columns that it is made from"
        problem = f"{name!r} was not measured as it stands: a rule of the schema made it"
        if schema.rules.unit is not None and name in schema.rules.unit.constant:
            fix = "level=persons, with constants and `records` alone; or score the synthetic table"
            problem = f"{name!r} is constant in a person: counts of persons were measured, not of records"
        raise UserError(problem, where=where, fix=fix)


def attribute_labels(schema: Schema, name: str) -> list[str]:
    """What each code of a measured attribute is called; one that a rule of the schema made has numbers alone."""
    fine = next((column for column, own in schema.fine.items() if own.name == name), None)
    if fine is not None:
        return [*code_names(schema.finest[fine])]
    if not as_a_column(schema, name):
        return [f"code {i}" for i in range(schema.measured[name].size)]
    return [*code_names(schema[name])]


def _distinct(schema: Schema, name: str) -> list[str]:
    """The labels, each once: a value that is itself called *missing* keeps its name, the code gets another."""
    names: list[str] = []
    for label in attribute_labels(schema, name):
        text = label
        while text in names:
            text = f"({text})"
        names.append(text)
    return names


def _without_clash(frame: pd.DataFrame) -> pd.DataFrame:
    """A column of the table that is called like one of ours stands in brackets."""
    ours = {"noisy", "noisy_standard_error", "consistent", "consistent_standard_error", "count", "standard_error"}
    return frame.rename(columns={n: f"({n})" for n in frame.columns if n in ours})


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:60] or "marginal"
