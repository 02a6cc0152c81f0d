"""Numbers that a source prints, figures and noise scales: each with what it is of, where it stands, and ours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.events import NoiseEvent
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError, check_names
from mechanisms.public.files import Json, JsonDict, is_number
from mechanisms.public.units import Neighbouring


@dataclass(frozen=True)
class Published:
    """One number that a source prints.

    Attributes:
        metric: what it is of, under our name.
        value: as printed, or as it follows from what is printed (then `place` says how).
        place: table, figure or section, and row. The sources are known in copies of different paging, so that no page
            of one copy is told.
        epsilon, dataset: the row of ours that it stands beside; None for any.
    """

    metric: str
    value: float
    place: str
    epsilon: float | None = None
    dataset: str | None = None


def published_of(entries: Sequence[Json]) -> tuple[Published, ...]:
    """What `experiment.published` lists.

    Raises:
        UserError: an unknown field, one that is missing, or a value of another kind.
    """
    names = [f.name for f in fields(Published)]
    form = "'experiment.published=[{metric: tvd, epsilon: 1, value: 0.1, place: Table 2}]'"
    published = []
    for entry in entries:
        check_names(entry, names, "unknown field", where="experiment.published", fix=form)
        texts = [entry.get("metric"), entry.get("place"), entry.get("dataset", "")]
        numbers = [entry.get("value"), entry.get("epsilon", 1.0)]
        fits = all(isinstance(t, str) for t in texts) and bool(texts[0]) and bool(texts[1])
        if not fits or not all(map(is_number, numbers)):
            raise UserError(f"got {dict(entry)}", where="experiment.published", fix=form)
        published.append(Published(**entry))
    return tuple(published)


def reported(numbers: Iterable[Published], metric: str, epsilon: float | None, dataset: str = "") -> JsonDict:
    """The source's number for a metric at an ε and its place; None and empty where it prints none."""
    for number in numbers:
        fits = number.epsilon is None or (epsilon is not None and math.isclose(number.epsilon, epsilon))
        if number.metric == metric and fits and number.dataset in (None, dataset):
            return {"reported": number.value, "place": number.place}
    return {"reported": None, "place": ""}


@dataclass(frozen=True)
class Beside:
    """A published number and ours; the form in which every experiment leaves them in experiment.json.

    Attributes:
        what: both are of, in words.
        published, place: as of `Published`; None and empty where the source prints none.
        ours: the mean over runs; None where it is undefined.
        error: the standard error of ours; None for one run, or where nothing is random.
        runs: how many runs ours is the mean of; None where nothing is random.
        floor: what fresh real records score, where it was measured.
    """

    what: str
    ours: float | None
    published: float | None = None
    place: str = ""
    error: float | None = None
    runs: int | None = None
    floor: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours less the published one; None without both."""
        return None if self.ours is None or self.published is None else self.ours - self.published


#: What stands with every figure of a smoke run.
SMOKE = "smoke"
#: And instead of what its source says.
TOO_SMALL = "smoke: a small version that shows that everything works; its figures say nothing about the method"


def of_smoke(pairs: Iterable[Beside]) -> tuple[Beside, ...]:
    """The same of a smoke run: marked as such, and beside nothing that is published."""
    return tuple(replace(p, what=f"{p.what} ({SMOKE})", published=None, place="") for p in pairs)


def beside_rows(rows: Sequence[Json]) -> list[JsonDict]:
    """Means of findings as `Beside`, in JSON values: what it is of, ours, what is published, where, the difference."""
    pairs = []
    for row in rows:
        label = f"{row['metric']}, {row['dataset']}"
        label += "" if row["epsilon"] is None else f", ε = {row['epsilon']:g}"
        label += f" ({SMOKE})" if row.get(SMOKE) else ""
        spread = [row.get(k) for k in ("error", "runs", "floor")]
        pairs.append(Beside(label, row["score"], row.get("reported"), row.get("place") or "", *spread))
    return as_json(pairs)


def as_json(pairs: Iterable[Beside]) -> list[JsonDict]:
    """With their differences, as `experiment.json` has them under `beside`."""
    return [asdict(pair) | {"difference": pair.difference} for pair in pairs]


def shown(value: float | None) -> str:
    """A number for readers, with four digits."""
    return "–" if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


FIELDS = ("epsilon", "max_records", "marginals", "printed")


def shared_equally(budget: Budget, marginals: int, mechanism: str = "gaussian") -> NoiseEvent:
    """The noise of each of so many marginals that share a budget equally, by the pipeline's own plan.

    The scale of Gaussian noise under `gdp` is √marginals · C / μ with δ = Φ(ε/μ − μ/2) − e^ε Φ(−ε/μ − μ/2), the formula
    of the source; under `zcdp` ε = ρ + 2√(ρ ln(1/δ)).
    """
    domain = Domain((Attribute("cell", 2),))
    plan = make_plan(domain, [Request(("cell",))] * marginals, budget, mechanism=mechanism)
    return plan.measurements[0].event


def compared_scales(printed: Sequence[Json], delta: float) -> list[dict[str, float]]:
    """Each printed scale with those of the text's formula (`formula`) and of zCDP (`zcdp`), in records.

    Raises:
        UserError: an entry that is not as FIELDS says.
    """
    rows = []
    for entry in printed:
        values = [entry.get(name) for name in FIELDS]
        if set(entry) != set(FIELDS) or not all(isinstance(v, int | float) and 0 < v < math.inf for v in values):
            fix = f"a list of {{{', '.join(f'{name}: …' for name in FIELDS)}}}, numbers above 0"
            raise UserError(f"got {dict(entry)}", where="experiment.scales", fix=fix)
        epsilon, bound, count = float(entry["epsilon"]), int(entry["max_records"]), int(entry["marginals"])
        scales = {
            name: shared_equally(Budget(epsilon, delta, accountant, Neighbouring.ADD_REMOVE, bound), count).scale
            for name, accountant in (("formula", "gdp"), ("zcdp", "zcdp"))
        }
        rows.append({**{n: float(entry[n]) for n in FIELDS}, **scales})
    return rows


def beside_printed(rows: Sequence[Mapping[str, float]]) -> tuple[Beside, ...]:
    """Each printed scale beside ours by the text's formula and by zCDP."""
    words = {"formula": "by the formula of the text", "zcdp": "by zCDP"}
    return tuple(
        Beside(
            f"noise scale at ε = {row['epsilon']:g}, C = {row['max_records']:g}, {how}",
            row[name],
            row["printed"],
            "section Noise calibration",
        )
        for row in rows
        for name, how in words.items()
    )


def in_words(row: Mapping[str, float]) -> str:
    """A line for readers."""
    return (
        f"Noise scale at ε = {row['epsilon']:g}, C = {row['max_records']:g}, {row['marginals']:g} marginals: the "
        f"source prints {row['printed']:g}; its own formula (gdp, as here) gives {row['formula']:.2f}; "
        f"zCDP's conversion {row['zcdp']:.2f}."
    )
