"""Density estimation, the first metric of the 2018 challenge (Li et al. 2021b, §5.1): 300 random 3-way marginals."""

from __future__ import annotations

import math

import pandas as pd

from evaluation.accuracy.anita_accuracy import table_distances
from evaluation.metric import Inputs, OneScore
from evaluation.mgd.targets import draw_schemas


def density_of(inputs: Inputs) -> OneScore:
    """The metric `density`, of codes: their discretization stands for the challenge's 100 bins.

    10⁶ · (1 − s / 2), s the mean L1 distance; in `frame` each drawn schema has its attributes and l1d, in [0, 2].
    Goal: any three attributes together are distributed as in the truth. Range: [0, 1,000,000]; the latter is perfect.
    Edge cases: a schema drawn twice counts twice; fewer than three columns make marginals of all of them.
    """
    real, synthetic, seed = inputs.real, inputs.synthetic, inputs.options.seed
    drawn = [real.domain.canonical(s) for s in draw_schemas(real.domain.names, seed=seed)]
    each = table_distances(real, synthetic, list(dict.fromkeys(drawn)))
    errors = dict(zip(each["attributes"], each["l1d"], strict=True))
    frame = pd.DataFrame({"attributes": drawn, "l1d": [errors[s] for s in drawn]})
    worst = frame.drop_duplicates("attributes").sort_values("l1d", ascending=False, kind="stable").head(10)
    listed = [{"attributes": [*a], "l1d": float(d)} for a, d in zip(worst["attributes"], worst["l1d"], strict=True)]
    details = {"schemas": len(frame), "seed": seed, "mean_l1d": float(frame["l1d"].mean()), "worst": listed}
    return OneScore(1e6 * (1 - math.fsum(frame["l1d"]) / len(frame) / 2), details, frame)
