"""Outlier coverage: its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.metric import Inputs, Metric, scored

if TYPE_CHECKING:
    from evaluation.coverage.outlier_coverage import OutlierCoverage


def _coverage(inputs: Inputs) -> OutlierCoverage:
    from evaluation.coverage.outlier_coverage import outlier_coverage, places

    def named(column: str, code: int) -> str:
        if inputs.schema is not None:
            from mechanisms.public.schema.code_labels import code_names

            return str([*code_names(inputs.schema[column])][code])
        return str(code) if inputs.options.values is None else inputs.options.values[column].label(code)

    numbers = inputs.numbers or {a.name: places(a) for a in inputs.real.domain.attributes if a.ordered > 1}
    return outlier_coverage(inputs.real, inputs.synthetic, numbers, named, seed=inputs.options.seed)


OUTLIER_COVERAGE = Metric(
    name="outlier_coverage",
    title="Outliers and rare values that the synthetic table covers",
    says="{score:.1%} of the real records in the tails and rare values of a column have a synthetic counterpart",
    goal="high",
    low=0,
    high=1,
    perfect=1,
    reference="a second sample",
    source="ours, after OutlierCoverage of SDMetrics; fences of Tukey 1977",
    run=scored(_coverage),
    ends=lambda result: result.ends,
    quick=True,
    on_values=True,
)
