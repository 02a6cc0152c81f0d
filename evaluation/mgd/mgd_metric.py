"""MGD: its entry, its settings and the marginals that they choose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.metric import Inputs, Metric, MetricSettings, scored
from mechanisms.public.errors import UserError
from mechanisms.public.settings import setting

if TYPE_CHECKING:
    from evaluation.mgd.marginal_difference import MGDResult
    from evaluation.mgd.targets import Targets
    from mechanisms.public.schema.table_schema import Schema

SOLVERS = ("auto", "exact", "flow", "lp")


@dataclass(frozen=True)
class MgdSettings(MetricSettings):
    """Settings.

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
        solver: of each marginal.
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
    solver: str = setting(
        "auto", "auto | exact | flow | lp: all exact; auto picks the fastest for each marginal", choices=SOLVERS
    )


def chosen_targets(own: MgdSettings, schema: Schema, seed: int) -> Targets:
    """The marginals that the settings name.

    Raises:
        UserError: settings that cannot be, or that do not fit the schema.
    """
    from evaluation.mgd.presets import PresetSpec, preset_targets
    from evaluation.mgd.targets import read_targets

    if own.targets is not None and own.preset != "kway":
        fix = "drop evaluation.preset, or evaluation.targets"
        raise UserError("a preset and an own list of marginals", where="evaluation.targets", fix=fix)
    if own.targets is not None:
        given = _from_file(own.targets) if isinstance(own.targets, str) else own.targets
        targets = read_targets(schema, given, delta=own.delta)
    else:
        if own.k and min(own.k) > (columns := len(schema.domain)):
            fix = f"orders of at most {columns}, as many as the table has columns"
            raise UserError(f"got {own.k}", where="evaluation.k", fix=fix)
        spec = PresetSpec(own.preset, tuple(own.attributes), tuple(own.k), own.max_marginals, own.delta, seed)
        targets = preset_targets(schema, spec)
    return targets


def _from_file(path: str) -> object:
    """The content of a YAML file of target marginals."""
    import yaml

    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        fix = "a path of a YAML file, or a list"
        raise UserError(f"cannot read {path!r}: {error.strerror}", where="evaluation.targets", fix=fix) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        fix = "a YAML list of target marginals in UTF-8"
        raise UserError(f"{path!r} is not well formed", where="evaluation.targets", fix=fix) from error


def _cost(inputs: Inputs) -> MGDResult:
    from evaluation.mgd.marginal_difference import mgd

    if inputs.schema is None:
        raise UserError("no schema", where="mgd", fix="the schema that both tables were coded with")
    own, progress = inputs.own(MgdSettings), inputs.options.progress
    settings = {"alpha": own.alpha, "solver": own.solver, "progress": progress, "deltas": own.deltas}
    return mgd(inputs.all_rows, inputs.synthetic, inputs.schema, inputs.ready, **settings)  # type: ignore[arg-type]


MGD = Metric(
    name="mgd",
    title="MGD: cost of moving records between the cells of marginals",
    says="moving, adding and removing records until marginals agree costs {score:.1%} of the real records",
    goal="low",
    low=0,
    high=None,
    perfect=0,
    reference="its floor: what two samples of the real table score",
    source="Li et al. 2021a, Equation 3",
    run=scored(_cost),
    ends=lambda result: result.ends,
    settings=MgdSettings,
    prepare=chosen_targets,
    quick=True,
    empty=True,
    counted=True,
)
