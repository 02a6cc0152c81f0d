"""The verdict of two tables that are scored, from what the metrics may use."""

from __future__ import annotations

import numpy as np

from evaluation.metric import ROW_FACTS, Options
from evaluation.verdict.verdict import Verdict, not_judged, verdict
from mechanisms.public.coded_table import CodedTable


def judge(real: CodedTable, synthetic: CodedTable, options: Options) -> Verdict:
    """Privacy against the holdout; not judged, with the reason, where there is none or the tables do not fit.

    Units are those that the options name, else the subjects where those of the holdout are known.
    """
    holdout, rows = options.holdout, {"training": real.rows, "synthetic": synthetic.rows}
    if holdout is None:
        need = options.why.get("holdout", ROW_FACTS["holdout"])
        return not_judged(f"there is no holdout ({need})", **rows)
    if not real.domain == synthetic.domain == holdout.domain:
        return not_judged("the tables have different columns or codes", **rows)
    units = None
    if options.unit is not None and options.holdout_unit is not None:
        units = (np.asarray(options.unit, np.int64), np.asarray(options.holdout_unit, np.int64))
    return verdict(real, synthetic, holdout, units=units, seed=options.seed)
