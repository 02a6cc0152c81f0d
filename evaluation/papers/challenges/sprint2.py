"""The official scorer of sprint 2 (American Community Survey): k-marginal per PUMA and year."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.metric import Inputs
from evaluation.papers.challenges.kmarginal import KMarginal, draw_marginals, k_marginal, pool_tables
from mechanisms.public.coded_table import CodedTable

BY = ("PUMA", "YEAR")
SEED, DRAWS, CUTOFF = 123456, 50, 250
#: What a submission carries besides the schema.
NOT_SCORED = ("epsilon", "sim_individual_id")


def sprint2_coded(
    real: CodedTable,
    synthetic: CodedTable,
    *,
    by: Sequence[str] = BY,
    k: int = 2,
    draws: int = DRAWS,
    seed: int = SEED,
    cutoff: float = CUTOFF,
) -> KMarginal:
    """The official score, of any two tables of codes: their discretization stands for the scorer's bins.

    Goal: every two-way mix right in every PUMA and year. Range: [0, 1000]; 1000 is perfect. Reference: 1 %, 10 % and
    50 % of the contest's rows score 572-590, 831-839 and 940-944.

    Args:
        by: the columns that make a place and time; none for the table as a whole.
    """
    features = [n for n in real.domain.names if n not in (*by, *NOT_SCORED)]
    drawn = draw_marginals(features, k=k, draws=draws, seed=seed)
    return k_marginal(pool_tables(real, synthetic), by, drawn, cutoff=cutoff)


def sprint2_of(inputs: Inputs) -> KMarginal:
    """The metric `sprint2`."""
    return sprint2_coded(inputs.real, inputs.synthetic, by=(inputs.column("segment"), inputs.column("time")))
