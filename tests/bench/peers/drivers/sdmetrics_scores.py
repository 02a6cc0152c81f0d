"""The QualityReport of SDMetrics: column shapes and pair trends; all columns categorical."""

from __future__ import annotations

import pandas as pd
from exchange import Request, request, said
from sdmetrics.reports.single_table import QualityReport


def main(asked: Request) -> None:
    real, synthetic = (pd.read_csv(asked.files[n], dtype=str) for n in ("real", "synthetic"))
    report = QualityReport()
    report.generate(real, synthetic, {"columns": {n: {"sdtype": "categorical"} for n in real}}, verbose=False)
    properties = report.get_properties().set_index("Property")["Score"]
    said(
        "sdmetrics", "pandas", values={"1-way": properties["Column Shapes"], "2-way": properties["Column Pair Trends"]}
    )


if __name__ == "__main__":
    main(request())
