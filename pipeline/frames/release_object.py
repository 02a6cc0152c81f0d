"""A release in Python: rows, marginals and scores from what crossed the wall; nothing here costs privacy."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evaluation.score import Scorecard
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.files import as_path, no_empty_folders, whole_file
from mechanisms.public.tables.formats import persons_of, released_table
from mechanisms.public.text_table import notebook_table
from pipeline.folders import whole_folder
from pipeline.frames.frame_files import ArrowStream, Frame, Kinds, Table, table_files
from pipeline.frames.frame_kinds import FORMS, in_form, keep_kinds, stored_kinds
from pipeline.frames.rows_as_asked import RowSource, plain_where
from pipeline.inference.estimate_questions import EstimateQuestion
from pipeline.inference.relations import distances
from pipeline.inference.release_bounds import estimate, table_bounds
from pipeline.release_folder import read_release
from pipeline.release_query import answer
from pipeline.scores import two_tables
from pipeline.scores.release_beside import STATEMENT
from pipeline.settings.compose import compose_config
from pipeline.settings.config import ScoreConfig, SynthConfig, SynthesisConfig, typed
from pipeline.settings.methods import usable_synthesizer
from pipeline.settings.overrides import overrides_of
from pipeline.statement.signing import MANIFEST
from pipeline.statement.words import condition_in_words, loss_in_words, noted, refuse_part, words_of

#: Settings of `synth` that are arguments of `sample`.
OF_SAMPLE = {"where": "where=…", "rows": "rows", "synthesis.rows": "rows", "seed": "seed=…", "synthesis.seed": "seed=…"}


@dataclass(frozen=True, eq=False)
class Release(RowSource):
    """What a run released, in memory; made by `fit` and `load`.

    Guarantee: all methods are post-processing of the release and cost no privacy; `score` reads a real table and its
        numbers are NOT private.
    Attributes:
        schema: the public schema.
        measurements: the noisy answers.
        statement: what was promised and spent: the content of privacy.json.
    """

    _files: Mapping[str, bytes] = field(repr=False)
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
        rows.append(("columns", ", ".join(c.name for c in self.schema.held)))
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
                table's metadata) says which, of how many independent rows they tell as much, and in `notes` what the
                condition leaves out, and whether there may be no such record.
            seed: the same seed gives the same rows; that takes nothing from the promise. None: fresh randomness.
            form: pandas, polars, or arrow: a `pyarrow.Table`; None: polars where the frame was, else pandas.
        Raises:
            UserError: a number of rows or a seed below 0; another form; an unknown column or value; no row, or hardly
                any, satisfies the condition.
        """
        form = one_of(self._form if form is None else form, FORMS, "form")
        rng = np.random.default_rng(seed := _whole(seed, "seed"))
        facts: Mapping[str, Any] | None
        where = plain_where(where)
        if isinstance(rows, pd.DataFrame | ArrowStream):
            table, facts = self._row_for_each(rows, where, seed, rng)
        else:
            table, facts = self._rows(_whole(rows, "rows"), where, seed, rng)
        return in_form(table, self.schema, self._kinds, form, facts)

    def marginal(self, columns: Sequence[str], *, solution: str | None = None, level: str = "records") -> pd.DataFrame:
        """A marginal from the noisy answers: a row per cell with count, standard error and a 95 % interval.

        Args:
            solution: maxent, least_norm or linear: PriView's answer, also where no measured marginal has all columns;
                counts alone, as no answer tells their error.
            level: records; or persons: each counts once, by its constants and its number of `records`.
        Raises:
            UserError: an unknown column or solution; without one, no measured marginal tells.
        """
        answered = answer(self.schema, self.measurements, marginal=columns, solution=solution, level=level)
        return noted(answered, self.statement)

    def distances(self) -> pd.DataFrame:
        """How far each pair is from independence (InDif), the most dependent first, with a standard error.

        It holds the noise of the distance and that of the one-way counts.

        Raises:
            UserError: the run did not ask for that (selection=auto, indif and groups do).
        """
        return noted(distances(self.schema, self.measurements), self.statement)

    def count(self, where: Mapping[str, Any], *, level: str = "records") -> pd.DataFrame:
        """How many records, or persons, satisfy conditions, from the noisy answers, as `query` says it: one row.

        Args:
            where: column → a value, a list of values, or [low, high] of an ordered column, both included.
            level: as of `marginal`.
        """
        asked = plain_where(where)
        return noted(answer(self.schema, self.measurements, where=asked, level=level), self.statement)

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
            UserError: an impossible question, or a keyword that it has not; no measured marginal tells it.
        """
        names = [f.name for f in fields(EstimateQuestion)]
        for name in (n for n in more if n not in names):
            fix = f"{', '.join(names[3:])}; for conditions count(where)"
            raise UserError(f"{name}=: no such keyword", where="estimate", fix=fix)
        asked = EstimateQuestion(what, column, other, by, **more)
        return estimate(self.schema, self.statement, self.measurements, asked)

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
        target = as_path(path, "path", "a new folder")
        if target.exists():
            raise UserError(f"{target} is there already", where="path", fix="another folder, or move it away")
        try:
            with no_empty_folders(target.parent):
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
        except OSError as error:
            raise UserError(f"cannot write {target} ({error.strerror})", where="path", fix="another folder") from error
        return target

    def score(
        self, real: Table, *, holdout: Table | None = None, units: Table | None = None, **settings: Any
    ) -> Scorecard:
        """Scores of the released synthetic table against a real one, with what the statement says; NOT private.

        Args:
            real: a data frame, or the path of a table.
            holdout: likewise, with real records that were set aside, for the verdict on privacy.
            units: likewise, with one row per person beside the real records, as of `fit`.
            settings: those of `score`, such as metrics=["mgd"] or **{"evaluation.max_marginals": 50}.
        """
        refuse_part(self.given, "scores")
        config = typed(compose_config("score", overrides_of(settings)), ScoreConfig)
        tables = {"real": real, "holdout": holdout, "units": units}
        with table_files(tables, self.schema) as paths, tempfile.TemporaryDirectory(prefix="score-") as work:
            table = self._written(Path(work), "schema.yaml", STATEMENT, MANIFEST)
            config.real, config.synthetic = paths["real"], str(table)
            config.holdout = paths.get("holdout", config.holdout)
            config.units.path = paths.get("units", config.units.path)
            config.schema = str(Path(work) / "schema.yaml")
            return two_tables.score(config, quiet=True)


def _whole(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise UserError(f"got {value!r}", where=name, fix="a whole number of at least 0")
    return int(value)


def load(path: Path | str, **settings: Any) -> Release:
    """A release from its folder, or from the folder of its run; every file is checked against the manifest.

    Args:
        path: RUN/release, or RUN.
        settings: how `sample` makes rows, as for `synth`: synthesis="pgm", **{"synthesis.max_cells": 10_000}.
    Raises:
        UserError: no path; no release there; a file was edited, is missing or is foreign.
    """
    folder = as_path(path, "path", "the folder of a run, or its release")
    inner = folder / "release"
    sample = {name: f"sample({argument})" for name, argument in OF_SAMPLE.items()}
    own = {"synthesis": "auto", **settings}
    config = typed(
        compose_config("synth", overrides_of(own, {"from": "path", "output": "save", **sample})), SynthConfig
    )
    usable_synthesizer(config.synthesis)
    release = inner if (inner / "measurements").is_dir() else folder
    return read(release, config.synthesis)


def read(folder: Path, synthesis: SynthesisConfig, kinds: Kinds | None = None, form: str = FORMS[0]) -> Release:
    """The release of a folder with all its files.

    Args:
        kinds: of the columns of the frame that it was made from; None: those that are kept beside it, or of the schema.
        form: of the frames that `sample` gives, where the kinds are given.
    """
    schema, statement, measurements = read_release(folder)
    if kinds is None:
        kinds, form = stored_kinds(folder)
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    return Release(schema, measurements, statement, kinds, synthesis, files, form)
