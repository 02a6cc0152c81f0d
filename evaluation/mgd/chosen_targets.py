"""The marginals that the settings of MGD choose, and the metric on them."""

from __future__ import annotations

from pathlib import Path

import yaml

from evaluation.metric import Inputs
from evaluation.mgd.marginal_difference import MGDResult, mgd
from evaluation.mgd.mgd_metric import MgdSettings
from evaluation.mgd.presets import PresetSpec, preset_targets
from evaluation.mgd.targets import Targets, read_targets
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema


def chosen_targets(own: MgdSettings, schema: Schema, seed: int) -> Targets:
    """The marginals that the settings name.

    Raises:
        UserError: settings that cannot be, or that do not fit the schema.
    """
    if own.targets is not None and own.preset != "kway":
        fix = "drop evaluation.preset, or evaluation.targets"
        raise UserError("a preset and an own list of marginals", where="evaluation.targets", fix=fix)
    if own.targets is not None:
        given = _from_file(own.targets) if isinstance(own.targets, str) else own.targets
        return read_targets(schema, given, delta=own.delta)
    if min(own.k) > (columns := len(schema.domain)):
        fix = f"orders of at most {columns}, as many as the table has columns"
        raise UserError(f"got {own.k}", where="evaluation.k", fix=fix)
    spec = PresetSpec(own.preset, tuple(own.attributes), tuple(own.k), own.max_marginals, own.delta, seed)
    return preset_targets(schema, spec)


def _from_file(path: str) -> object:
    """The content of a YAML file of target marginals."""
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        fix = "a path of a YAML file, or a list"
        raise UserError(f"cannot read {path!r}: {error.strerror}", where="evaluation.targets", fix=fix) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        fix = "a YAML list of target marginals in UTF-8"
        raise UserError(f"{path!r} is not well formed", where="evaluation.targets", fix=fix) from error


def mgd_of(inputs: Inputs) -> MGDResult:
    """The metric `mgd`."""
    if inputs.schema is None:
        raise UserError("no schema", where="mgd", fix="the schema that both tables were coded with")
    own, progress = inputs.own(MgdSettings), inputs.options.progress
    settings = {"alpha": own.alpha, "solver": own.solver, "progress": progress, "deltas": own.deltas}
    return mgd(inputs.all_rows, inputs.synthetic, inputs.schema, inputs.ready, **settings)  # type: ignore[arg-type]
