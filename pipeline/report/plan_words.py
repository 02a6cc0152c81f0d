"""What to expect at a number of rows, of marginals and means, and what a larger ε, a smaller C or coarser bins buy."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from statistics import median

from mechanisms.accounting.budget import POWER
from mechanisms.accounting.plan import Plan
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.schema.bins import DAY
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.text_table import lined_up
from mechanisms.selection.base import GIVEN
from mechanisms.selection.selections import method_of
from pipeline.report.answer_noise import cell_lines
from pipeline.settings import build
from pipeline.settings.config import Config
from pipeline.settings.specs import build_specs
from synthesis.numbers.noise_errors import expected_error

#: A marginal is useful where noise alone is expected to move at most this share of the records to wrong cells.
USEFUL = 0.1
#: Names that a line shows.
NAMED = 4
#: The medians of `what_would_help`, in the order shown.
MEDIANS = ("columns", "one_alone", "all_together")

#: Of a marginal: the expected Σ |noise| in records if it takes the whole budget of its stage, and if all share that.
Noise = tuple[Clique, float, float]


def _expected_noise(plan: Plan, domain: Domain, *, halved: bool = False) -> list[Noise]:
    """Of every marginal whose noise is known ahead, or that may be chosen: what its noise alone would make."""
    planned: list[Noise] = []
    if plan.method:
        for m in (s.measurement for s in plan.slots if s.reservation.stage == GIVEN and s.reservation.clique):
            own = _cells(domain, m.clique, halved) * m.event.mean_abs
            planned.append((m.clique, own, own))
    return planned + candidate_noise(plan, domain, halved=halved)


def candidate_noise(plan: Plan, domain: Domain, *, halved: bool = False) -> list[Noise]:
    """The same of every marginal that may be chosen, or is planned where none is chosen.

    Args:
        halved: as if two neighbouring bins of every ordered column were one.
    """
    strength = plan.accountant.strength
    if not plan.method:
        planned = plan.measurements
        part = [_cells(domain, m.clique, halved) / domain.cells(m.clique) for m in planned]
        loads = [m.share * p**POWER for m, p in zip(planned, part, strict=True)]
        left = math.fsum(m.share for m in planned) / math.fsum(loads)
        alone = [m.query.rows * p * m.event.mean_abs * strength(m.share) for m, p in zip(planned, part, strict=True)]
        shares = [load * left for load in loads]
        return [(m.clique, a, a / strength(s)) for m, a, s in zip(planned, alone, shares, strict=True)]
    cliques = method_of(plan.method).reported
    if not cliques or plan.reserve is None:
        return []
    sizes = [_cells(domain, c, halved) for c in cliques]
    loads = [size**plan.power for size in sizes]
    whole, errors = math.fsum(loads), [size * plan.reserve_event.mean_abs for size in sizes]
    return [(c, e, e / strength(load / whole)) for c, e, load in zip(cliques, errors, loads, strict=True)]


def _cells(domain: Domain, clique: Clique, halved: bool) -> int:
    return math.prod(coarse_size(domain, n) if halved else domain[n].size for n in clique)


def coarse_size(domain: Domain, name: str) -> int:
    """How many codes are left where neighbours on a line are one."""
    attribute = domain[name]
    line = attribute.ordered if attribute.ordered > 1 else 0
    return math.ceil(line / 2) + attribute.size - line


def expectations(config: Config, schema: Schema, plan: Plan, rows: int) -> JsonDict:
    """What to expect at so many rows: which marginals are useful and which drown, and what other settings would buy.

    Errors are total variation distances that noise alone makes, at most 1: ½ Σ |noise| / rows.
    """
    noise = _expected_noise(plan, schema.measured)
    larger = [(c, _tvd(a, rows), _tvd(t, rows)) for c, a, t in noise if len(c) > 1]
    columns = sorted(((c, _tvd(t, rows)) for c, _, t in noise if len(c) == 1), key=lambda c: -c[1])
    return {
        "columns": {
            "useful": _names([c for c, t in columns if t <= USEFUL]),
            "rough": _names([c for c, t in columns if USEFUL < t < 1]),
            "drown": _names([c for c, t in columns if t >= 1]),
        },
        "larger": {
            "useful": _names([c for c, _, t in larger if t <= USEFUL]),
            "useful_if_few": _names([c for c, a, t in larger if a <= USEFUL < t]),
            "rough": _names([c for c, a, _ in larger if USEFUL < a < 1]),
            "drown": _names([c for c, a, _ in larger if a >= 1]),
        },
        "fewer_cells": cell_lines(schema, [c[0] for c, t in columns if t >= 1], config.privacy.unit),
        "noisiest_cells": _worst_cells(schema.measured, noise, rows),
        "what_would_help": [_figures("as planned", noise, rows), *_others(config, schema, plan, rows)],
    }


def _worst_cells(domain: Domain, noise: Sequence[Noise], rows: int) -> list[JsonDict]:
    """A cell of the noisiest column and of the noisiest larger marginal, each alone."""
    groups = ([n for n in noise if len(n[0]) == 1], [n for n in noise if len(n[0]) > 1])
    worst = [max(group, key=lambda n: n[1]) for group in groups if group]
    sizes = [(" × ".join(clique), alone, domain.cells(clique)) for clique, alone, _ in worst]
    return [{"of": name, "records": rows / cells, "noise": alone / cells} for name, alone, cells in sizes]


def _cell_in_words(cell: Json) -> str:
    records, noise = (f"{cell[k]:,.0f}" if cell[k] >= 10 else f"{cell[k]:.2g}" for k in ("records", "noise"))
    return f"a cell of {cell['of']}: {records} records on the mean, and noise whose mean size is {noise}"


def _tvd(noise: float, rows: int) -> float:
    return min(noise / (2 * rows), 1.0)


def _names(cliques: Sequence[Clique]) -> list[str]:
    return [" × ".join(c) for c in cliques]


def _others(config: Config, schema: Schema, plan: Plan, rows: int) -> list[JsonDict]:
    """The same figures at twice ε, at half of C, and with half as many bins; each planned anew."""
    figures = []
    more = copy.deepcopy(config)
    more.privacy.epsilon *= 2
    noise = _expected_noise(_planned(more, schema), schema.measured)
    figures.append(_figures(f"privacy.epsilon={more.privacy.epsilon:g}", noise, rows))
    if plan.budget.max_records > 1:
        half = math.ceil(plan.budget.max_records / 2)
        noise = _expected_noise(_planned(config, schema, half), schema.measured)
        name = f"privacy.max_records={half} (units with more lose the rest)"
        figures.append(_figures(name, noise, rows))
    if any(coarse_size(schema.measured, n) < schema.measured[n].size for n in schema.measured.names):
        noise = _expected_noise(plan, schema.measured, halved=True)
        figures.append(_figures("half as many bins in every ordered column", noise, rows))
    return figures


def _planned(config: Config, schema: Schema, max_records: int | None = None) -> Plan:
    specs = build_specs(config).with_bound(max_records)
    return build.build_plan(specs, build.build_workload(specs, schema), schema)


def _figures(name: str, noise: Sequence[Noise], rows: int) -> JsonDict:
    """Medians over the columns and over the larger marginals; None where there are none."""
    ones = [_tvd(t, rows) for c, _, t in noise if len(c) == 1]
    larger = [(_tvd(a, rows), _tvd(t, rows)) for c, a, t in noise if len(c) > 1]
    shares = (ones, *([pair[i] for pair in larger] for i in (0, 1)))
    return {"with": name} | {k: median(own) if own else None for k, own in zip(MEDIANS, shares, strict=True)}


def in_words(facts: Json, rows: int) -> list[str]:
    """The same as lines for people."""
    lines = [f"at {rows:,} rows, how many of the records noise is expected to put into wrong cells:"]
    columns, larger = facts["columns"], facts["larger"]
    lines += _line("columns", "that are useful", columns["useful"], f"at most {USEFUL:.0%} each")
    lines += _line("columns", "that are rough", columns["rough"], f"more than {USEFUL:.0%}")
    lines += _line("columns", "that drown", columns["drown"], "nothing but noise")
    lines += [f"    {line}" for line in facts["fewer_cells"]]
    lines += _line("larger marginals", "that are useful even if all are measured", larger["useful"], "")
    lines += _line("larger marginals", "that are useful if few others are measured", larger["useful_if_few"], "")
    lines += _line("larger marginals", "that are rough even alone", larger["rough"], "")
    lines += _line("larger marginals", "that drown even alone", larger["drown"], "nothing but noise")
    lines += [f"  {_cell_in_words(c)}" for c in facts["noisiest_cells"]]
    heads = ["  what would help", "a column", "a larger marginal, alone", "each, if all are measured"]
    others = [
        [f"  {other['with']}", *("–" if other[k] is None else f"{other[k]:.1%}" for k in MEDIANS)]
        for other in facts["what_would_help"]
    ]
    return [*lines, "the median of that share, as planned and otherwise:", *lined_up([heads, *others])]


def _line(kind: str, which: str, names: Sequence[str], why: str) -> list[str]:
    if not names:
        return []
    shown = ", ".join(names[:NAMED]) + (" …" if len(names) > NAMED else "")
    if len(names) == 1:
        kind, which = kind.removesuffix("s"), which.replace(" are ", " is ", 1).replace("drown", "drowns")
    return [f"  {len(names)} {kind} {which}{f' ({why})' if why else ''}: {shown}"]


def mean_errors(schema: Schema, plan: Plan, rows: int | None) -> list[JsonDict]:
    """Per denoised column of numbers or dates: cells, their noise, the expected error of the mean at `rows` records.

    Cells are the fine ones, or the codes if each of them is one value.

    `mean_share` is that error as a share of the mean where values have a long tail, `mean_standard_error` in the
    column's unit (days or seconds of dates) where they do not; `assumed` says what is assumed of the values. Bins are
    measured once more with what marginals of several columns leave, which is not counted in.
    """
    alone = [m for m in plan.measurements if plan.method and len(m.clique) == 1]
    noise = {m.clique[0]: m.event.stddev for m in alone}
    errors: list[JsonDict] = []
    for name in schema.shaped:
        cells = schema.fine.get(name, schema.domain[name])
        if cells.name not in noise:
            continue
        bins = noise.get(name) if name in schema.fine else None
        error = None if rows is None else expected_error(schema[name], noise[cells.name], bins, rows)
        errors.append(
            {
                "column": name,
                "kind": schema[name].kind,
                "fine_cells": cells.ordered,
                "stddev": noise[cells.name],
                "mean_standard_error": error.value if error and error.share is None else None,
                "mean_share": error.share if error else None,
                "assumed": error.assumed if error else None,
            }
        )
    return errors


def error_lines(errors: list[JsonDict]) -> list[str]:
    """The same in lines for people; none without columns of numbers."""
    lines = ["numbers and dates, each alone (cells; noise of a cell; standard error to expect of the mean):"]
    for e in errors:
        mean, share = e["mean_standard_error"], e["mean_share"]
        error = "set plan.rows" if mean is None else _in_unit(mean, e["kind"])
        error = error if share is None else f"{share:.1%}"
        lines.append(f"  {e['column']}: {e['fine_cells']} cells ± {e['stddev']:.3g} records; mean ± {error}")
    assumed = dict.fromkeys((e["assumed"], e["mean_share"] is None) for e in errors if e["assumed"])
    lines += [f"  assumed for {'numbers' if plain else 'shares of the mean'}: {a}" for a, plain in assumed]
    return lines if errors else []


def _in_unit(error: float, kind: str) -> str:
    """An error of a mean with its unit, where that is one of time."""
    if kind == "datetime":
        kind, error = ("date", error / DAY) if error >= DAY else ("hours", error / 3_600)
    return f"{error:.3g} days" if kind == "date" else f"{error:.3g} hours" if kind == "hours" else f"{error:.3g}"
