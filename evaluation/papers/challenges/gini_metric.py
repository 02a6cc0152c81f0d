"""Gini index and rank of the pay gap of the 2018 challenge: its entry and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, MetricSettings
from mechanisms.public.settings import column, setting

if TYPE_CHECKING:
    import pandas as pd

    from evaluation.papers.challenges.gini import GiniScore
    from mechanisms.public.coded_table import CodedTable


@dataclass(frozen=True)
class GiniSettings(MetricSettings):
    """Settings.

    Attributes:
        group, sex, income: columns.
        gini_index: as the challenge's scorer computes it, or as usual.
    """

    group: str | None = column("the column of the groups")
    sex: str | None = column("the column of the sexes")
    income: str | None = column("the column of the incomes")
    gini_index: str = setting(
        "challenge", "how `gini` computes the index: challenge (1/n lower) or usual", choices=("challenge", "usual")
    )


def _gini(inputs: Inputs) -> GiniScore:
    from evaluation.papers.challenges.gini import gini_score

    group, sex, income = (inputs.column(role) for role in ("group", "sex", "income"))
    frames = [_frame(t, inputs, (group, sex, income)) for t in (inputs.real, inputs.synthetic)]
    usual = inputs.own(GiniSettings).gini_index == "usual"
    return gini_score(frames[0], frames[1], group=group, sex=sex, income=income, usual=usual)


def _frame(table: CodedTable, inputs: Inputs, names: tuple[str, str, str]) -> pd.DataFrame:
    """Values of group, sex and income: those of the file, or where only codes are known, drawn inside their bins."""
    import pandas as pd

    if inputs.schema is not None or inputs.options.values is None:
        return _decoded(table, inputs, names)
    frame, income = inputs.options.values.frame(table, names), names[-1]
    return frame.assign(**{income: pd.to_numeric(frame[income], errors="coerce").astype(float)})


def _decoded(table: CodedTable, inputs: Inputs, names: tuple[str, str, str]) -> pd.DataFrame:
    """Values of group, sex and income: numbers drawn inside their bins; texts among numbers are absent."""
    import numpy as np
    import pandas as pd

    from mechanisms.public.tables.decode import decode_column

    if inputs.schema is None:
        return pd.DataFrame({n: table.column(n) for n in names})
    rng = np.random.default_rng(inputs.options.seed)
    columns = {n: decode_column(table.column(n), inputs.schema[n], rng) for n in names}
    income = names[-1]
    return pd.DataFrame(columns | {income: pd.to_numeric(columns[income], errors="coerce").astype(float)})


GINI = Metric(
    name="gini",
    title="2018: Gini index and rank of the gender pay gap",
    says="{score:,.0f} of 1,000,000 points for the Gini indices and the order of the cities' pay gaps",
    goal="high",
    high=1_000_000,
    perfect=1_000_000,
    reference="its floor",
    source="Li et al. 2021b, 5.1",
    run=_gini,
    settings=GiniSettings,
    needs=("group", "sex", "income"),
    on_values=True,
)
