"""The report of mostlyai-qa: accuracies, similarity and distances, with a holdout; columns as integers."""

from __future__ import annotations

import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # its model is in the package

import pandas as pd
from exchange import Request, request, said
from mostlyai import qa


def main(asked: Request) -> None:
    qa.set_random_state(0)
    real, synthetic, holdout = (pd.read_csv(asked.files[n]) for n in ("real", "synthetic", "holdout"))
    page = Path(asked.files["output"]).with_suffix(".html")
    _, metrics = qa.report(
        syn_tgt_data=synthetic, trn_tgt_data=real, hol_tgt_data=holdout, report_path=page, statistics_path=None
    )
    accuracy = metrics.accuracy
    values = {"1-way": accuracy.univariate, "2-way": accuracy.bivariate, "3-way": accuracy.trivariate}
    values["dcr_share"] = metrics.distances.dcr_share
    said("mostlyai-qa", "pandas", "torch", values=values)


if __name__ == "__main__":
    main(request())
