"""The metrics of the core: what each is called and what its scores mean; the function that computes it, by its name.

Help and misspelt settings are answered from here: no function is loaded before it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from evaluation.metric import Inputs, Metric, MetricSettings
from mechanisms.public.settings import columns, setting

if TYPE_CHECKING:
    from evaluation.accuracy.anita_accuracy import NWay


@dataclass(frozen=True)
class FixedSettings(MetricSettings):
    """Settings of metrics that know constants of a person."""

    fixed: list[str] = columns(
        "columns that belong to the subject", example="a list of columns: 'evaluation.fixed=[sex]'"
    )


@dataclass(frozen=True)
class PersonsSettings(FixedSettings):
    """Settings of the metric of whole persons."""

    most_records: int | None = setting(None, "a subject with more records than these is a violation", least=1)


@dataclass(frozen=True)
class AttackSettings(MetricSettings):
    """Settings of attacks on units."""

    attacks: int = setting(1_000, "so many attacks on training units and on units of the holdout, at most", least=1)
    attack_rows: int = setting(
        10_000, "at most so many rows of each table know or are attacked, a random sample", least=1
    )


@dataclass(frozen=True)
class SinglingOutSettings(AttackSettings):
    """Settings of the attack that singles out."""

    condition_columns: int = setting(3, "columns of each condition that is to single out a person", least=1)


@dataclass(frozen=True)
class InferenceSettings(AttackSettings):
    """Settings of the attack that infers a column."""

    secrets: list[str] = columns(
        "the columns that an attacker infers from all others; default: each",
        example="a list of columns: 'evaluation.secrets=[income]'",
    )


@dataclass(frozen=True)
class AucSettings(MetricSettings):
    """Settings of the classifier that tells tables apart."""

    auc_rows: int = setting(10_000, "a model tells at most so many rows of each table apart, a random sample", least=20)


@dataclass(frozen=True)
class TstrSettings(MetricSettings):
    """Settings of models that learn from synthetic records."""

    predict: list[str] = columns(
        "the columns to predict; default: the last", example="a list of columns: 'evaluation.predict=[income]'"
    )
    predict_all: bool = setting(False, "predict every column in turn, in place of those of evaluation.predict")
    predict_rows: int = setting(20_000, "models learn from and are tested on at most so many rows, a sample", least=1)


TVD = Metric(
    name="tvd",
    title="Total variation distance, mean of the 2-way marginals",
    goal="low",
    perfect=0,
    reference="its floor; independent columns",
    source="common use; Li et al. 2021b; Platzer 2020",
    run="evaluation.tvd:tvd_of",
    says="{score:.1%} of the records would have to change their cell, on average over pairs of columns",
    quick=True,
    empty=True,
    counted=True,
)

CORRELATION = Metric(
    name="correlation",
    title="Correlation difference",
    says="the correlation of two columns is off by {score:.3f} on average",
    goal="low",
    high=2,
    perfect=0,
    reference="its floor; independent columns",
    source="common use",
    run="evaluation.correlation:correlation_of",
    quick=True,
    on_values=True,
)

DEPENDENCE = Metric(
    name="dependence",
    title="Dependence kept",
    says="{score:.1%} of what columns tell about each other is kept",
    goal="high",
    perfect=1,
    reference="its floor; independent columns score 0",
    source="Pearson's contingency coefficient, corrected as in Bergsma 2013",
    run="evaluation.dependence:dependence_of",
    quick=True,
    counted=True,
)

OUTLIER_COVERAGE = Metric(
    name="outlier_coverage",
    title="Outliers and rare values that the synthetic table covers",
    says="{score:.1%} of the real records in the tails and rare values of a column have a synthetic counterpart",
    goal="high",
    perfect=1,
    reference="a second sample",
    source="ours, after OutlierCoverage of SDMetrics; fences of Tukey 1977",
    run="evaluation.coverage.outlier_coverage:coverage_of",
    quick=True,
    on_values=True,
)

#: The entry of an attack on units: it needs some that were set aside.
ATTACK = partial(Metric, goal="low", perfect=0, needs=("holdout",), reported=True, referable=False, on_values=True)

SINGLING_OUT = ATTACK(
    name="singling_out",
    title="Attack: singling out, risk beyond the holdout's",
    says="an attacker singles out {score:.1%} of those whom guessing would not",
    reference="guesses on the holdout",
    source="Giomi et al. 2023, section 4.1",
    run="evaluation.attacks.unit_attacks:singling_out_of",
    settings=SinglingOutSettings,
)

LINKAGE = ATTACK(
    name="linkage",
    title="Attack: linkage of two halves of a record, risk beyond the holdout's",
    says="an attacker links {score:.1%} of those whom guessing would not link",
    reference="links of the holdout",
    source="Giomi et al. 2023, section 4.2",
    run="evaluation.attacks.unit_attacks:linkage_of",
    settings=AttackSettings,
)

ATTRIBUTE_INFERENCE = ATTACK(
    name="attribute_inference",
    title="Attack: inference of the column at most risk, beyond the holdout's",
    says="an attacker who knows all else wins {score:.1%} of what is left to guess about the column at most risk",
    reference="guesses about the holdout",
    source="Giomi et al. 2023, section 4.3",
    run="evaluation.attacks.unit_attacks:attribute_inference",
    settings=InferenceSettings,
)

MEMBERSHIP = ATTACK(
    name="membership_inference",
    title="Attack: membership inference, AUC of the best of three",
    says="an attacker ranks a member above somebody else with probability {score:.3f}",
    perfect=0.5,
    reference="½ by guessing, and what ε allows",
    source="Houssiau et al. 2022; van Breugel et al. 2023",
    run="evaluation.attacks.membership:membership_of",
    settings=AttackSettings,
    library="sklearn",
)

#: The entry of what models that learn from rows tell.
LEARNED = partial(Metric, goal="low", reported=True, referable=False, library="sklearn", on_values=True)

TWO_SAMPLE_AUC = LEARNED(
    name="two_sample_auc",
    title="Classifier that tells synthetic from real records, AUC",
    says="a model ranks a synthetic record above a real one with probability {score:.3f}",
    perfect=0.5,
    reference="½ by guessing, and real records told from other real ones",
    source="Lopez-Paz & Oquab 2017",
    run="evaluation.learning.tstr:two_sample_auc_of",
    settings=AucSettings,
)

TSTR = LEARNED(
    name="tstr",
    title="TSTR: quality lost by models that learn from synthetic records",
    says="models that learn from synthetic records lose {score:.3f} of balanced accuracy, or R² for numbers",
    low=-1,
    perfect=0,
    reference="models trained on real records; guessing",
    source="Esteban et al. 2017, section 4.2",
    run="evaluation.learning.tstr:tstr_of",
    settings=TstrSettings,
)

PERSONS = Metric(
    name="persons",
    title="Whole persons: what is lost of what holds a person's records together",
    says="{score:.1%} of what shuffled owners lose of whole persons is lost",
    goal="low",
    high=None,
    perfect=0,
    reference="one half of the real persons against the other; 1: real rows with shuffled owners",
    source="ours; the intraclass correlation of Fisher 1925",
    run="evaluation.persons.person_scores:persons_of",
    settings=PersonsSettings,
    needs=("subject",),
    quick=True,
    referable=False,
    on_values=True,
)


@dataclass(frozen=True)
class AnitaSettings(MetricSettings):
    """Settings that ANITA's accuracies share."""

    buckets: int = setting(10, "ANITA's m: buckets per attribute", least=2)


@dataclass(frozen=True)
class WaysSettings(AnitaSettings):
    """Settings of ANITA's accuracy of n columns."""

    ways: int = setting(5, "number of columns of each marginal", least=1)


def _accuracy(n: int | None, inputs: Inputs) -> NWay:
    from evaluation.accuracy.anita_accuracy import affordable_tables, n_way

    ways, m = n or inputs.own(WaysSettings).ways, inputs.own(AnitaSettings).buckets
    limit = affordable_tables(inputs.real.rows + inputs.synthetic.rows)
    return n_way(*inputs.bucketed(m), ways, limit=limit, seed=inputs.options.seed)


def _entry(n: int | None) -> Metric:
    columns = f"{n} column{'s'[: n > 1]}" if n else "so many columns"
    return Metric(
        name=f"anita_{n or 'n'}way",
        title=f"ANITA: accuracy of {n or 'n'}-way tables{'' if n else ' (evaluation.ways)'}",
        goal="high",
        perfect=1,
        reference="1 − its floor, in the details",
        source="Platzer 2020, section 2",
        run=partial(_accuracy, n),
        score="accuracy",
        says=f"{{score:.1%}} of the records lie in the same of its own cells, on average over tables of {columns}",
        settings=AnitaSettings if n else WaysSettings,
        quick=n in QUICK,
        on_values=True,
    )


#: Computed without being asked for.
QUICK = (1, 2, 3)
ANITA_1WAY, ANITA_2WAY, ANITA_3WAY, ANITA_4WAY, ANITA_NWAY = (_entry(n) for n in (1, 2, 3, 4, None))


@dataclass(frozen=True)
class MgdSettings(MetricSettings):
    """Settings of MGD.

    A preset is kway (all k-way marginals, or a seeded sample), thirds (weights 1/9, 1/9, 1/3 over three columns),
    located (k-way marginals with a temporal or spatial column), pie (one marginal, no mass moves), density (random
    3-way marginals, no mass moves, Δ = 0) or pums (3-way marginals, and one of city, sex and income that weighs as much
    as all others together). In an own list each entry has `attributes` (a column, or {column: level of its hierarchy}),
    and optionally `weights` ({column: a number in [0, 1] or inf}; default: inf for categorical columns, equal for
    ordinal ones), `delta`, and `weight` (its share).

    Attributes:
        preset, attributes, k, max_marginals, targets: which marginals.
        delta: tolerance Δ; deltas: others, at which the score is told too.
        alpha: cost of adding or removing one record.
    """

    preset: str = setting("kway", "which marginals: kway | thirds | located | pie | density | pums")
    attributes: list[str] = setting(
        [],
        "thirds, pie, pums: the columns of the marginal; located: the temporal and spatial columns",
        example="a list of columns: 'evaluation.attributes=[month,city,type]'",
    )
    k: list[int] = setting(
        [1, 2, 3],
        "kway, located: the orders",
        least=1,
        filled=True,
        distinct=True,
        example="a list of whole numbers: 'evaluation.k=[1,2]'",
    )
    max_marginals: int = setting(300, "at most so many marginals of each order, else a seeded sample", least=1)
    targets: Any = setting(None, "an own list of marginals instead of a preset, or a YAML file with one")
    delta: float = setting(2.0, "tolerance Δ, in records: count differences up to this cost nothing", least=0)
    deltas: list[float] = setting(
        [],
        "further tolerances, at which the score is told too",
        least=0,
        example="a list: 'evaluation.deltas=[0,5,10]'",
    )
    alpha: float = setting(1.0, "cost of adding or removing one record", above=0)


MGD = Metric(
    name="mgd",
    title="MGD: cost of moving records between the cells of marginals",
    says="moving, adding and removing records until marginals agree costs {score:.1%} of the real records",
    goal="low",
    high=None,
    perfect=0,
    reference="its floor: what two samples of the real table score",
    source="Li et al. 2021a, Equation 3",
    run="evaluation.mgd.presets:mgd_of",
    settings=MgdSettings,
    prepare="evaluation.mgd.presets:chosen_targets",
    quick=True,
    empty=True,
    counted=True,
)
