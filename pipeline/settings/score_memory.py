"""The memory that the scores of a run need, known from the schema and the number of rows before anything is spent."""

from __future__ import annotations

from evaluation.counts import DENSE_CELLS
from mechanisms.public.marginals import BATCH_CELLS
from mechanisms.public.schema.table_schema import Schema
from pipeline.settings.config import Config
from pipeline.settings.machine_limits import memory_limit_bytes

#: Of a run that scores, whatever the rows: libraries, compiled loops, and the room of what reads the files.
SCORING_BYTES = 700_000_000
#: Of a cell of either table as a value, with what is sorted, and as a code alone. Peaks of the demo, measured: 0.57 GB
#: with 20,000 rows, 0.78 with 290,000, 1.28 with 2,000,000.
VALUE_BYTES, CODE_BYTES = 16, 4
#: Rows times columns of both tables up to which metrics read values, not codes alone.
MOST_CELLS = 200_000_000


def scores_bytes(config: Config, schema: Schema, records: int | None = None) -> int:
    """An upper estimate of the peak while a run scores; 0 where it does not.

    Args:
        records: of the table; None: data.rows, plan.rows or a million.
    """
    if not config.evaluation.enabled:
        return 0
    real = records or config.data.rows or config.plan.rows or 1_000_000
    real = real if config.engine.kind != "spark" else min(real, config.engine.score_rows or real)
    rows = real + (config.synthesis.rows or real)
    cells = rows * len(schema.columns)
    sizes = sorted(a.size for a in schema.domain.attributes)
    pairs = (sum(sizes) ** 2 - sum(n * n for n in sizes)) // 2
    largest = sizes[-1] * sizes[-2] if len(sizes) > 1 else sizes[-1]
    counts = 2 * 8 * min(pairs, BATCH_CELLS) + 6 * 8 * min(largest, DENSE_CELLS, rows)
    return SCORING_BYTES + cells * (VALUE_BYTES if cells <= MOST_CELLS else CODE_BYTES) + counts


def said_scores_memory(config: Config, schema: Schema, records: int) -> list[str]:
    """A sentence before a run spends, where its scores are predicted to need more than limits.memory_gb; NOT private.

    A refusal would tell the number of records, which the guarantee protects; a sentence for a terminal does not.
    """
    needed, limit = scores_bytes(config, schema, records), memory_limit_bytes(config.limits.memory_gb)
    if needed <= limit:
        return []
    much = f"{needed / 1e9:.3g} GB, more than {limit / 1e9:.3g}"
    return [
        f"the scores are predicted to need {much}: evaluation.enabled=false leaves them out (with resume=true also "
        "later, at no cost), and `score` takes both tables elsewhere"
    ]
