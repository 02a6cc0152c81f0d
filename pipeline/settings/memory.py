"""The memory and the disk that a run, its rows and its scores need, predicted before anything is spent."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Sequence
from numbers import Real
from pathlib import Path

from evaluation.counts import DENSE_CELLS
from mechanisms.accounting.plan import Plan
from mechanisms.public.coded_table import BATCH_CELLS, code_dtype
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError, first_few
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.formats import FORMATS
from mechanisms.selection.selections import method_of
from pipeline.settings.config import Config, LimitsConfig
from pipeline.settings.methods import engine_of
from pipeline.settings.specs import Specs
from synthesis.consistency.agree import default_rows
from synthesis.contract import CHUNK_ROWS, Synthesizer
from synthesis.numbers.value_shapes import for_synthesis
from synthesis.pgm.junction_tree import model_cells

#: What the interpreter and the libraries take before any work.
LIBRARIES_BYTES = 400_000_000
#: Of a run that scores, whatever the rows: libraries, compiled loops, the room of what reads the files, and what the
#: report says of the release, which is made beside the scores.
SCORING_BYTES = 820_000_000
#: Of a cell of either table as a value, with what is sorted, and as a code alone. Peaks of the demo, measured: 0.57 GB
#: with 20,000 rows, 0.89 with 290,000, 1.28 with 2,000,000.
VALUE_BYTES, CODE_BYTES = 16, 4
#: Of a run of persons, whatever the rows: compiled loops and the room of what reads the file; of a row counted as a
#: person's or linked into one, and of each of its columns. Peaks of a million rows: 0.80 GB at 5 columns, 0.86 at 10.
PERSONS_BYTES, PERSON_BYTES, PERSON_COLUMN_BYTES = 250_000_000, 150, 12
#: Rows times columns of both tables up to which metrics read values, not codes alone.
MOST_CELLS = 200_000_000


def planned_cells(plan: Plan, domain: Domain) -> list[tuple[str, int]]:
    """Name and cells of every marginal that the plan may measure; what is chosen later counts as the largest choice."""
    cells_of = [(" × ".join(m.clique), m.query.columns) for m in plan.measurements]
    return cells_of + later_cells(plan, domain)


def predicted_memory_bytes(specs: Specs, schema: Schema, plan: Plan) -> int:
    """An upper estimate of a run's peak, without opening the data: libraries, counts, answers, targets and rows.

    The rows of the private table are memory-mapped and not counted. Without synthesis.rows (nor the demo's data.rows)
    a million synthetic rows are assumed.
    """
    domain, config, spec = schema.measured, specs.config, specs.synthesizer
    cells, later = (sum(n for _, n in sizes) for sizes in (planned_cells(plan, domain), later_cells(plan, domain)))
    cliques = [m.clique for m in plan.measurements]
    rows, most = config.synthesis.rows or config.data.rows or 1_000_000, rows_at_once(spec, schema, config.accept)
    rows = rows if most is None else min(rows, most)
    counting = 8 * (min(cells, BATCH_CELLS) + 2 * cells)
    fixed = [c for c, _ in schema.zeros]
    grown = _grown_cells(plan, domain, spec.model_settings.max_cells)
    synthesis = _synthesis_bytes(spec, domain, cliques, rows, fixed, grown)
    if spec.max_model_cells is None:  # the model between the rounds, where there is one
        synthesis += 7 * 8 * later + (0 if method_of(plan.method).max_cells_between is None else 14 * 8 * grown)
    return LIBRARIES_BYTES + counting + 3 * 8 * later + max(synthesis, persons_bytes(schema, rows))


def _synthesis_bytes(
    spec: Synthesizer, domain: Domain, cliques: Sequence[Clique], rows: int, fixed: Sequence[Clique], grown: int = 0
) -> int:
    """What a synthesizer predicts that it holds; no limit would stop a number that is none."""
    given = spec.predicted_bytes(domain, cliques, rows, fixed=fixed, grown=grown)
    if isinstance(given, Real) and given >= 0:
        return math.ceil(min(given, sys.maxsize))
    problem = f"{type(spec).__name__} of the module {type(spec).__module__} predicts no number of bytes"
    raise UserError(problem, where="synthesis.name", fix="predicted_bytes: a number from 0 on")


def persons_bytes(schema: Schema, rows: int) -> int:
    """An upper estimate of the peak while so many rows are told apart by person, or linked; 0 where none are."""
    if schema.rules.unit is None:
        return 0
    return PERSONS_BYTES + rows * (PERSON_BYTES + PERSON_COLUMN_BYTES * len(schema.columns))


def model_sizes(spec: Synthesizer, schema: Schema, plan: Plan) -> tuple[int | None, int | None]:
    """Cells of the graphical model of the marginals known ahead, and at most in the end where others are chosen later.

    In cells of its junction tree; None for other synthesizers, and where nothing is chosen later.
    """
    if (limit := spec.max_model_cells) is None:
        return None, None
    cliques = [*(m.clique for m in plan.measurements), *(c for c, _ in schema.zeros)]
    return model_cells(schema.measured, cliques), _grown_cells(plan, schema.measured, limit) or None


def rows_at_once(spec: Synthesizer, schema: Schema, accept: Sequence[object]) -> int | None:
    """The most synthetic rows that are held at a time; None: all of them.

    A model's rows are drawn in chunks, unless rows are given units, or noisy scores decide about all of them.

    Args:
        accept: what such scores decide.
    """
    drawn = spec.streams(schema.zeros) and not schema.rules.id_column and not accept
    return CHUNK_ROWS if drawn else None


def no_room(spec: Synthesizer, coarse: Measurements, fixed: Sequence[Clique]) -> list[str]:
    """A sentence where a model has no room for marginals that were chosen and measured.

    Args:
        coarse: what the synthesizer works from.
        fixed: as of `check_rows`.
    """
    held, every = (dict.fromkeys(a.clique for a in each.answers) for each in (spec.held(coarse, fixed), coarse))
    lost = [" × ".join(c) for c in every if c not in held]
    if not lost:
        return []
    problem = f"a graphical model of synthesis.max_cells={spec.max_model_cells:,} has no room for {len(lost):,} of"
    named = f"the {len(every):,} marginals measured, and rows do not follow them: {first_few(lost, 5)}"
    return [f"{problem} {named}; raise it, or take synthesis=auto (of a run with resume=true): neither costs privacy"]


def check_rows(
    schema: Schema,
    measurements: Measurements,
    spec: Synthesizer,
    rows: int | None,
    limits: LimitsConfig,
    *,
    fixed: Sequence[Clique] = (),
    at_once: int | None = None,
) -> None:
    """Refuse before synthesis what its rows are predicted to need beyond limits.memory_gb.

    Args:
        fixed: cliques of the schema's impossible combinations.
        at_once: the most rows that are held at a time; None: all of them.
    Raises:
        UserError: too many rows, asked for or by the noisy total.
    """
    coarse = for_synthesis(measurements, schema)
    count = default_rows(coarse) if rows is None else rows
    measured = [a.clique for a in spec.held(coarse, fixed).answers]
    held = count if at_once is None else min(count, at_once)
    needed = max(_synthesis_bytes(spec, coarse.domain, measured, held, fixed), persons_bytes(schema, count))
    needed += LIBRARIES_BYTES
    limit = limits.memory_bytes
    if needed > limit:
        problem = f"{count:,} synthetic rows are predicted to need {needed / 1e9:.3g} GB, more than {limit / 1e9:.3g}"
        raise UserError(problem, where="synthesis.rows", fix="fewer synthesis.rows, or raise limits.memory_gb")


def check_memory(specs: Specs, schema: Schema, plan: Plan) -> None:
    """Refuse before the work starts what is predicted to need more than limits.memory_gb."""
    limit = specs.config.limits.memory_bytes
    needed = predicted_memory_bytes(specs, schema, plan)
    if needed > limit:
        name, largest = max(planned_cells(plan, schema.measured), key=lambda p: p[1])
        raise UserError(
            f"the run is predicted to need {needed / 1e9:.3g} GB, more than {limit / 1e9:.3g}; the largest marginal is "
            f"{name} with {largest:,} cells",
            where="limits.memory_gb",
            fix="lower selection.max_cells or synthesis.rows, or raise limits.memory_gb",
        )


def scores_bytes(config: Config, schema: Schema, records: int | None = None) -> int:
    """An upper estimate of the peak while a run scores; 0 where it does not.

    Args:
        records: of the table; None: data.rows, plan.rows or a million.
    """
    if not config.evaluation.enabled:
        return 0
    real = records or config.data.rows or config.plan.rows or 1_000_000
    real = min(real, engine_of(config.engine).most_scored or real)
    rows = real + (config.synthesis.rows or real)
    cells = rows * len(schema.columns)
    sizes = sorted(a.size for a in schema.domain.attributes)
    pairs = (sum(sizes) ** 2 - sum(n * n for n in sizes)) // 2
    largest = sizes[-1] * sizes[-2] if len(sizes) > 1 else sizes[-1]
    counts = 2 * 8 * min(pairs, BATCH_CELLS) + 6 * 8 * min(largest, DENSE_CELLS, rows)
    return SCORING_BYTES + cells * (VALUE_BYTES if cells <= MOST_CELLS else CODE_BYTES) + counts


def scores_memory_texts(config: Config, schema: Schema, records: int) -> list[str]:
    """A sentence before a run spends, where its scores are predicted to need more than limits.memory_gb; NOT private.

    A refusal would tell the number of records, which the guarantee protects; a sentence for a terminal does not.
    """
    needed, limit = scores_bytes(config, schema, records), config.limits.memory_bytes
    if needed <= limit:
        return []
    much = f"{needed / 1e9:.3g} GB, more than {limit / 1e9:.3g}"
    return [
        f"the scores are predicted to need {much}: evaluation.enabled=false leaves them out (with resume=true also "
        "later, at no cost), and `score` takes both tables elsewhere"
    ]


def check_disk(specs: Specs, schema: Schema, root: Path) -> None:
    """Refuse rows that a disk cannot hold.

    The bound is a lower one: codes if rows are drawn in chunks, and a sign and a comma for each value of a file that is
    not compressed.

    Args:
        root: the run's folder, which need not exist.
    Raises:
        UserError: synthesis.rows needs more than is free there.
    """
    config, columns = specs.config, schema.domain.attributes
    rows, most = config.synthesis.rows or 0, rows_at_once(specs.synthesizer, schema, config.accept)
    codes = sum(code_dtype(a.size).itemsize for a in columns) if most is not None and rows > most else 0
    needed = rows * (codes + (0 if FORMATS[config.release.format].compressed else 2 * len(columns)))
    place = next(p for p in (root.absolute(), *root.absolute().parents) if p.is_dir())
    if needed > (free := shutil.disk_usage(place).free):
        problem = (
            f"{rows:,} synthetic rows need more than {needed / 1e9:,.3g} GB of disk, and {free / 1e9:,.3g} are free"
        )
        raise UserError(problem, where="synthesis.rows", fix="fewer, or a hydra.run.dir on a larger disk")


def later_cells(plan: Plan, domain: Domain) -> list[tuple[str, int]]:
    """Name and most cells of every marginal that is chosen later: those of slots, and those that a reserve may buy."""
    return method_of(plan.method).later_cells(domain, [s.reservation for s in plan.slots])


def _grown_cells(plan: Plan, domain: Domain, limit: int) -> int:
    """The most cells of a graphical model of all that may be measured; 0 where nothing is chosen later."""
    if not later_cells(plan, domain):
        return 0
    cells = method_of(plan.method).grown_cells([s.reservation for s in plan.slots])
    return min(limit if cells is None else cells, limit, math.prod(domain.shape(domain.names)))
