"""A release in Python: rows, marginals and scores from what crossed the wall; nothing here costs privacy."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evaluation.score import Scorecard
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.files import whole_file
from mechanisms.public.json_values import Json
from mechanisms.public.notebook_table import notebook_table
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.arrow_columns import arrow_table
from mechanisms.public.tables.formats import persons_of, released_table
from pipeline.conditions import build_condition
from pipeline.folders import whole_folder
from pipeline.frames import frame_kinds
from pipeline.frames.frame_files import ArrowStream, Frame, Kinds, Table, opened_stream, table_files
from pipeline.frames.frame_kinds import FORMS, in_form
from pipeline.frames.kept_kinds import keep_kinds
from pipeline.frames.keyword_settings import overrides_of
from pipeline.inference.estimate_questions import question
from pipeline.inference.relations import distances
from pipeline.inference.release_bounds import estimate_of, table_bounds
from pipeline.made_rows import RowMaker
from pipeline.measuring.public_tables import ready_again
from pipeline.release_query import answer
from pipeline.scores import two_tables
from pipeline.scores.release_beside import STATEMENT
from pipeline.settings.compose import compose_config
from pipeline.settings.config import LimitsConfig, ScoreConfig, SynthesisConfig, typed
from pipeline.settings.memory import check_rows
from pipeline.settings.methods import usable_synthesizer
from pipeline.statement.condition_words import condition_in_words, refuse_part
from pipeline.statement.digests import MANIFEST
from pipeline.statement.words import loss_in_words, words_of
from synthesis.contract import RowModel
from synthesis.numbers.value_shapes import for_synthesis


@dataclass(frozen=True, eq=False)
class Release:
    """What a run released, in memory; made by `fit` and `load`.

    Guarantee: all methods are post-processing of the release and cost no privacy; `score` reads a real table and its
        numbers are NOT private.
    Attributes:
        schema: the public schema.
        measurements: the noisy answers.
        statement: what was promised and spent: the content of privacy.json.
    """

    schema: Schema
    measurements: Measurements
    statement: Mapping[str, Any]
    _files: Mapping[str, bytes] = field(repr=False)
    _kinds: Kinds = field(repr=False)
    _synthesis: SynthesisConfig = field(repr=False)
    _form: str = field(default=FORMS[0], repr=False)

    @property
    def private(self) -> bool:
        """Whether the release says that it is private; if not, `statement["reasons_not_private"]` says why."""
        return bool(self.statement["private"])

    @property
    def given(self) -> Mapping[str, Any] | None:
        """Of a release whose table holds only rows that satisfy a condition: what was asked; None: of the whole."""
        manifest = json.loads(self._files[MANIFEST]) if MANIFEST in self._files else {}
        facts: Mapping[str, Any] | None = manifest.get("given")
        return facts

    def __repr__(self) -> str:
        facts, words = self.statement, words_of(self.statement)
        part = "" if self.given is None else f", a table of rows with {condition_in_words(self.given['where'])} only"
        if not self.private:
            return f"Release({self.schema.name!r}{part}, NOT private: {'; '.join(words['reasons_not_private'])})"
        terms = loss_in_words(facts)
        return f"Release({self.schema.name!r}{part}, private: {terms} for {words['unit']} ({facts['neighbouring']}))"

    def _repr_html_(self) -> str:
        facts, words = self.statement, words_of(self.statement)
        terms = f"{loss_in_words(facts)} for {words['unit']} ({facts['neighbouring']})"
        rows = [("private", terms if self.private else f"NO: {'; '.join(words['reasons_not_private'])}")]
        if self.given is not None:
            rows.append(("table", f"rows with {condition_in_words(self.given['where'])} only"))
        rows.append(("columns", ", ".join(self.schema.domain.names)))
        rows.append(("noisy marginals", f"{len(self.measurements.answers):,}"))
        return notebook_table(f"Release of {self.schema.name}", ("", ""), rows)

    def sample(
        self,
        rows: int | Frame | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        seed: int | None = None,
        form: str | None = None,
    ) -> Any:
        """New synthetic rows, in the columns, the order and the kinds of the frame that was fitted.

        Whole numbers and flags have room for gaps (Int64, boolean) where the schema says that values may be missing;
        the categories of a column are the schema's. A loaded release has the kinds that were kept beside it, else those
        of its schema.

        Args:
            rows: exactly so many; None: as many as the noisy answers say; a frame: one row for each of its rows, with
                that row's values (a gap: a missing value), in its order.
            where: column → a value, a list of values, or [low, high] of an ordered column (both included): all rows
                satisfy it. Their distribution is the model's given the condition; of a synthesizer that changes rows
                until they fit, rows are chosen from more of them by weight. `attrs["given"]` of the frame (the Arrow
                table's metadata) says which, and of how many independent rows they tell as much.
            seed: the same seed gives the same rows; that takes nothing from the promise. None: fresh randomness.
            form: pandas, polars, or arrow: a `pyarrow.Table`; None: polars where the frame was, else pandas.
        Raises:
            UserError: a number of rows or a seed below 0; another form; an unknown column or value; no row, or hardly
                any, satisfies the condition.
        """
        form = one_of(self._form if form is None else form, FORMS, "form")
        rng = np.random.default_rng(seed := _whole(seed, "seed"))
        facts: Mapping[str, Any] | None
        if isinstance(rows, pd.DataFrame | ArrowStream):
            table, facts = self._sampler.row_for_each(rows, where, seed, rng)
        else:
            table, facts = self._sampler.rows(_whole(rows, "rows"), where, seed, rng)
        return in_form(table, self.schema, self._kinds, form, facts)

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self.schema, self.measurements, self.statement, self._kinds, self._synthesis)

    def marginal(self, columns: Sequence[str], *, solution: str | None = None, level: str = "records") -> pd.DataFrame:
        """A marginal from the noisy answers: a row per cell with count, standard error and a 95 % interval.

        Args:
            solution: maxent, least_norm or linear: PriView's answer, also where no measured marginal has all columns;
                counts alone, as no answer tells their error.
            level: records; or persons: each counts once, by its constants and its number of `records`.
        Raises:
            UserError: an unknown column or solution; without one, no measured marginal tells.
        """
        names = [columns] if isinstance(columns, str) else columns
        return answer(self.schema, self.measurements, marginal=names, solution=solution, level=level)

    def distances(self) -> pd.DataFrame:
        """How far each pair is from independence (InDif), the most dependent first, with a standard error.

        It holds the noise of the distance and that of the one-way counts.

        Raises:
            UserError: the run did not ask for that (selection=auto, indif and groups do).
        """
        return distances(self.schema, self.measurements)

    def count(self, where: Mapping[str, Any], *, level: str = "records") -> pd.DataFrame:
        """How many records, or persons, satisfy conditions, from the noisy answers, as `query` says it: one row.

        Args:
            where: column → a value, a list of values, or [low, high] of an ordered column, both included.
            level: as of `marginal`.
        """
        return answer(self.schema, self.measurements, where=where, level=level)

    def estimate(
        self,
        what: str,
        column: str | None = None,
        other: str | None = None,
        *,
        by: str | Sequence[str] = (),
        **more: Any,
    ) -> pd.DataFrame:
        """A count, share, mean, quantile, correlation, odds ratio or test, with 95 % intervals that include the noise.

        Args:
            what, column, other, by, more: as of `pipeline.estimate`.
        Raises:
            UserError: an impossible question; no measured marginal tells it.
        """
        asked = question(what, column, other, by=by, **more)
        return estimate_of(self.schema, self.statement, self.measurements, asked)

    def bounds(self, marginal: Sequence[str] = ()) -> pd.DataFrame:
        """A 95 % bound on the error of each column and pair of the released table, or of one marginal."""
        refuse_part(self.given, "bounds")
        with tempfile.TemporaryDirectory(prefix="bounds-") as work:
            table = self._written(Path(work))
            return table_bounds(self.schema, self.statement, self.measurements, table, marginal=marginal)

    def _written(self, folder: Path, *more: str) -> Path:
        """The released table, in one file or two, and further files of the release, in a folder; its path."""
        name = released_table(self._files, "release")
        for inner in (name, persons_of(name), *more):
            if inner in self._files:
                (folder / inner).write_bytes(self._files[inner])
        return folder / name

    def save(self, path: Path | str) -> Path:
        """Write the release folder, as a run would: whole or not at all, with everything that `verify` looks at.

        Beside it `PATH.frame.json` keeps the kinds of the frame's columns for `load`; it is no part of the release.

        Raises:
            UserError: something is there already.
        """
        target = Path(path).expanduser()
        if target.exists():
            raise UserError(f"{target} is there already", where="path", fix="another folder, or move it away")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with (
                tempfile.TemporaryDirectory(prefix=".parts-", dir=target.parent) as work,
                whole_folder(target, Path(work)) as parts,
            ):
                for name, content in self._files.items():
                    with whole_file(parts / name) as part:
                        part.write_bytes(content)
            if self._kinds:
                keep_kinds(target, self._kinds, self._form)
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise UserError(f"cannot write {target} ({error.strerror})", where="path", fix="another folder") from error
        return target

    def score(self, real: Table, *, holdout: Table | None = None, **settings: Any) -> Scorecard:
        """Scores of the released synthetic table against a real one, with what the statement says; NOT private.

        Args:
            real: a data frame, or the path of a table.
            holdout: likewise, with real records that were set aside, for the verdict on privacy.
            settings: those of `score`, such as metrics=["mgd"] or **{"evaluation.max_marginals": 50}.
        """
        refuse_part(self.given, "scores")
        config = typed(compose_config("score", overrides_of(settings)), ScoreConfig)
        tables = {"real": real} | ({} if holdout is None else {"holdout": holdout})
        with table_files(tables, self.schema) as paths, tempfile.TemporaryDirectory(prefix="score-") as work:
            table = self._written(Path(work), "schema.yaml", STATEMENT, MANIFEST)
            config.real, config.synthetic = str(paths["real"]), str(table)
            config.holdout = str(paths["holdout"]) if holdout is not None else config.holdout
            config.schema = str(Path(work) / "schema.yaml")
            return two_tables.score(config, quiet=True)


def _whole(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise UserError(f"got {value!r}", where=name, fix="a whole number of at least 0")
    return int(value)


@dataclass(frozen=True, eq=False)
class Sampler:
    """What makes new rows of a release; its model is fitted once."""

    schema: Schema
    measurements: Measurements
    statement: Mapping[str, Any]
    kinds: Kinds
    synthesis: SynthesisConfig

    @cached_property
    def _model(self) -> RowModel | None:
        spec = usable_synthesizer(self.synthesis)
        return spec.model(for_synthesis(self.measurements, self.schema), zeros=self.schema.zeros)

    def rows(
        self, rows: int | None, where: Mapping[str, Any] | None, seed: int | None, rng: np.random.Generator
    ) -> tuple[Any, Json | None]:
        """An Arrow table of rows that satisfy a condition, as the schema makes them, and what is said of them.

        Raises:
            UserError: more rows than memory holds; as of `build_condition`.
        """
        schema, measurements = self.schema, self.measurements
        config = SynthesisConfig(self.synthesis.kind, rows, seed, self.synthesis.options)
        spec, condition = ready_again(config, schema, self.statement), build_condition(schema, where)
        try:
            check_rows(schema, measurements, spec, rows, LimitsConfig(), fixed=[c for c, _ in schema.zeros])
        except UserError as error:
            raise UserError(error.what, where="rows", fix="fewer rows at a time: each sample is a new draw") from None
        new = RowMaker(schema, measurements, spec, rng, model=self._model).made(rows, condition)
        texts = frame_kinds.texts(new.drawn_by, self.kinds)
        return arrow_table(new.rows, new.drawn_by, rng, texts=texts), new.given

    def row_for_each(
        self, conditions: Frame, where: Mapping[str, Any] | None, seed: int | None, rng: np.random.Generator
    ) -> tuple[Any, Json]:
        """One row for each row of a frame, with that row's values, in its order; a gap asks for a missing value.

        Rows of unequal conditions are of different units, whose ids go on from one condition to the next.

        Raises:
            UserError: no column or no row; a column that `where` names too; as of `rows`.
        """
        asked = conditions if isinstance(conditions, pd.DataFrame) else opened_stream(conditions, "rows").read_pandas()
        names = [str(name) for name in asked.columns]
        if not len(asked) or not names:
            fix = "a row of conditions for each row that you want; or a number of rows"
            raise UserError("a frame of conditions with no row, or no column", where="rows", fix=fix)
        if twice := sorted(set(names) & set(where or {})):
            raise UserError(f"{', '.join(map(repr, twice))} stands in the frame too", where="where", fix="one of them")
        places: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for place, row in enumerate(asked.astype(object).itertuples(index=False, name=None)):
            places[tuple(map(_plain, row))].append(place)
        made, units, effective, said = [], 0, 0.0, ""
        for values, rows in places.items():
            wish = {**(where or {}), **dict(zip(names, values, strict=True))}
            table, facts = self.rows(len(rows), wish, seed, rng)
            assert facts is not None
            table, units = _ids_from(table, self.schema.rules.id_column, units)
            made.append(table)
            effective, said = effective + facts["effective_rows"], facts["rows"]
        order = np.argsort(np.concatenate([np.array(rows) for rows in places.values()]))
        told = {"where": f"{len(places):,} conditions", "rows": said, "effective_rows": round(effective, 1)}
        return pa.concat_tables(made, promote_options="permissive").take(order), told


def _ids_from(table: Any, name: str, last: int) -> tuple[Any, int]:
    """The rows with numbers of units above the last one that was given, and the last one of these; names stay."""
    if not name or not pa.types.is_integer(table.schema.field(name).type):
        return table, last
    ids = pc.add(table[name], last)
    return table.set_column(table.schema.get_field_index(name), name, ids), int(pc.max(ids).as_py())


def _plain(value: Any) -> Any:
    """A value of a frame as a condition has it: gaps as None, whole numbers without a point."""
    if isinstance(value, list | tuple | np.ndarray):
        raise UserError(f"got {type(value).__name__}", where="rows", fix="one value in each cell; ranges: where={…}")
    if pd.isna(value):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value
