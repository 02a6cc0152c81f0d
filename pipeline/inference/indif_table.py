"""InDif of all pairs (Li et al. 2021b, section 5.2): the noisy distances from independence of a release as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema
from pipeline.inference.release_evidence import ReleaseEvidence
from pipeline.marginal_files import as_a_column
from synthesis.consistency.total import estimate_total


def distances(schema: Schema, measurements: Measurements) -> pd.DataFrame:
    """A line per pair, the most dependent first.

    InDif is the L1 distance of a pair's counts from the product of its noisy one-way counts: 0 for independent columns,
    at most twice the records. The text of section 5.2 calls a low one "high correlation"; it is the other way round.

    As an estimate of the distance from the product of the true counts it errs by its own noise and by that of the
    one-way counts, which makes weak pairs look more dependent: a lot where columns have many values.

    Guarantee: post-processing; costs no privacy.
    Returns:
        marginal, cells, distance (records; may be negative), standard_error (of both), indif (the distance over
        the noisy number of records), cells_compared (all, or merged).
    Raises:
        UserError: the release has none.
    """
    known = measurements.distances
    if known is None:
        fix = "a run with selection=auto, indif or groups: these ask for the distances of all pairs"
        raise UserError("the release holds no distances from independence", where="distances", fix=fix)
    total = estimate_total(measurements)
    shown = [i for i, c in enumerate(known.cliques) if all(as_a_column(schema, n) for n in c)]
    values = known.values[shown]
    own = NOISE_KINDS[known.noise].stddev * known.scale
    evidence = ReleaseEvidence(measurements)
    errors = [evidence.distance_error(known.cliques[i]) for i in shown]
    frame = pd.DataFrame(
        {
            "marginal": [" × ".join(known.cliques[i]) for i in shown],
            "cells": [measurements.domain.cells(known.cliques[i]) for i in shown],
            "distance": np.round(values, 2),
            "standard_error": np.round(errors, 2),
            "indif": np.round(values / max(total, 1.0), 5),
            "cells_compared": ["all" if known.whole[i] else "merged" for i in shown],
        }
    )
    frame = frame.sort_values("distance", ascending=False, kind="stable", ignore_index=True)
    frame.attrs["sources"] = []
    more = "that of the one-way counts, which makes weak pairs look more dependent than they are"
    frame.attrs["notes"] = [f"each distance has noise of ± {own:,.4g}; the standard error also holds {more}"]
    if known.below:
        frame.attrs["notes"].append(f"differences up to {known.below:.4g} records in a cell count as none")
    return frame
