"""The privacy loss of whole runs, from the rows: one unit and families, and grids whose matrix is written down anew.

The adversary knows every record but those of the units in question, and sees all that left.
"""

import itertools
import json
import math
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from mechanisms.accounting.accountants.registered import ACCOUNTANTS
from mechanisms.public.queries.adaptive_grid import GridQuery
from mechanisms.public.release_files import load_measurements
from mechanisms.public.units import WEIGHT_BITS, Norm
from tests.audit.cases import Case, config_of, plan_of
from tests.audit.hooks import Broken, Summed, numbers
from tests.audit.rates import people
from tests.audit.replay import outcome
from tests.audit.tape import Draw, Tape
from tests.audit.worlds import Row, Settings, write_table

#: Selections that draw noise alone, so that the loss of a run is a sum of its answers' losses.
NOISY = ("oneway", "pairs", "merged", "adagrid given", "indif", "auto", "auto residuals")
#: So many units change at once: one, and the families of which statements speak.
FAMILIES = (1, 2, 5)
MECHANISMS = ("gaussian", "laplace")
GRIDS = ("adagrid given", "adagrid tree", "adagrid targets")
#: Of each column of the audit's schema: how many codes it has, and the code of a text.
SHAPE: dict[str, tuple[int, Callable[[str], int]]] = {
    "a": (4, int),
    "b": (4, lambda text: {"x": 0, "y": 1}.get(text, 2)),
    "c": (5, lambda text: int(text) // 2),
    "d": (2, lambda text: int(text == "yes")),
    "e": (2, int),
}
#: What rounding in this file may add.
LOOSE = 1e-9


@dataclass
class Losses(Summed):
    """What whole runs cost those who changed.

    Attributes:
        largest: by the family's size the largest loss as a share of the one that is claimed.
        grids: answers whose matrix was written down anew, and compared on two tables each.
    """

    pairs: int = 0
    largest: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    grids: int = 0


def family(settings: Settings, units: int, seed: int) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Two tables that differ by so many units, whose records are copies of each other: duplicates, or a family."""
    rest = [(f"u{i // 2}", *row[1:]) for i, row in enumerate(people(seed, 24))]
    here = ("3", "y", "9", "yes", "1"), ("0", "x", "0", "no", "0")
    many = settings.bound if settings.column else 1
    with_, instead = ([(f"mine{k}", *row) for k in range(units) for _ in range(many)] for row in here)
    return (*rest, *with_), (*rest, *(instead if settings.replace else ()))


def loss_of(one: Tape, two: Tape) -> tuple[float, float]:
    """μ of all Gaussian answers and ε of all Laplace ones, from how far the exact answers are apart."""
    if one.steps != two.steps:
        raise Broken("other steps on the two tables")
    square, pure = 0.0, 0.0
    for name, draw in one.draws.items():
        said = numbers(draw.event)
        gaps = np.abs(np.array(_apart(draw, two.draws[name])))
        if said.kind == "gaussian":
            square += float((gaps**2).sum()) / said.scale**2
        else:
            pure += float(gaps.sum()) / said.scale
    return math.sqrt(square), pure


def _apart(one: Draw, two: Draw) -> list[float]:
    unit = 2.0 ** -(WEIGHT_BITS + one.bits)
    return [(a - b) * unit for a, b in zip(one.exact, two.exact, strict=True)]


def delta_of(mu: float, epsilon: float) -> float:
    """δ of two normal laws μ apart, at ε (Balle & Wang 2018)."""
    if mu <= 0:
        return 0.0
    far = math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2)) if epsilon < 700 else 0.0
    return max(math.exp(log_ndtr(mu / 2 - epsilon / mu)) - far, 0.0)


def check_family(case: Case, units: int, folder: Path) -> float:
    """The loss of a whole run as a share of what its statement claims for so many units: of δ at ε, or of ε."""
    tables = family(case.settings, units, case.seed)
    home = folder / "losses"
    first, left = outcome(case, folder, write_table(home / "d" / "t.csv", tables[0]), None)
    if isinstance(left, str):
        raise Broken(f"{case.name}: refused: {left}")
    said = json.loads((home / "d" / "run" / "release" / "privacy.json").read_text(encoding="utf-8"))
    claims = {g["units"]: g for g in said["group_privacy"]} | {1: said["guarantee"]}
    epsilon, delta = claims[units]["epsilon"], claims[units]["delta"]
    second, right = outcome(case, folder, write_table(home / "e" / "t.csv", tables[1]), first)
    mu, pure = loss_of(first, second)
    if left != right:
        raise Broken(f"{case.name}: {units} units show in the release beside the answers")
    if epsilon is None:
        return 0.0
    found = delta_of(mu, epsilon - pure)
    if pure > epsilon * (1 + LOOSE) or found > delta * (1 + LOOSE):
        what = f"{units} units: ε = {pure:.6g} and δ = {found:.4g} at the ε = {epsilon:.6g}, δ = {delta:.4g} claimed"
        raise Broken(f"{case.name}: {what}")
    return max(pure / epsilon, found / delta if delta else 0.0)


def families(folder: Path, count: int, *, part: tuple[int, int] = (0, 1), words: Collection[str] = ()) -> Losses:
    """Every n-th of so many cases that a plan admits, from the i-th on, each with all families, and the grids."""
    product = list(itertools.product(NOISY, ACCOUNTANTS, (False, True), ("record", "weight", "truncate"), MECHANISMS))
    random.Random(28).shuffle(product)
    found, done = Losses(), 0
    for seed, (selection, accountant, other, clip, mechanism) in enumerate(product):
        unit = Settings(clip != "record", other, "weight" if clip == "record" else clip, "drop", 1 + seed % 3)
        unit = unit if unit.column else Settings(False, other, "weight", "drop", 1)
        case = Case(selection, mechanism, accountant, unit, "plain", (1.0, 8.0)[seed % 2], seed)
        if done >= count or (words and not all(w in case.name for w in words)):
            continue
        if plan_of(config_of(case, folder, folder / "none.csv")) is None:
            continue
        done += 1
        if done % part[1] == part[0] % part[1]:
            found.pairs += len(FAMILIES)
            for units in FAMILIES:
                found.largest[units] = max(found.largest[units], check_family(case, units, folder))
    return found


def matrix(query: GridQuery, norm: Norm) -> tuple[list[dict[int, int]], int]:
    """The rows of an adaptive grid in whole units, cell → entry, as McKenna (2021) says, by the fine sets alone.

    A cell that is fine is answered once; of one that is not, each of the largest measured sets inside answers, by the
    same rule, 1/√parents (L2) or 1/parents (L1) of the cell's sum there: the squares, or the entries, add up to 1.
    """
    one, cells = 1 << query.bits, list(itertools.product(*map(range, query.shape)))
    rows: dict[tuple[Any, ...], dict[int, int]] = {}

    def told(path: tuple[Any, ...], axes: tuple[int, ...], cell: tuple[int, ...], parts: int, place: int) -> None:
        here = tuple(cell[a] for a in axes)
        flat = int(np.ravel_multi_index(here, [query.shape[a] for a in axes]))
        fine = set(query.fine[axes].tolist())
        if flat in fine:
            weight = math.isqrt(one * one // parts) if norm == "l2" else one // parts
            row = rows.setdefault((*path, axes, flat), {})
            row[place] = row.get(place, 0) + weight
            return
        inside = [s for s in query.fine if set(s) < set(axes)]
        inside = [s for s in inside if not any(set(s) < set(t) for t in inside)]
        for parent in inside:
            told((*path, axes), parent, cell, parts * len(inside), place)

    for place, cell in enumerate(cells):
        told((), tuple(range(len(query.shape))), cell, 1, place)
    return list(rows.values()), one


def counts_of(rows: Sequence[Row], clique: Sequence[str]) -> Any:
    """A marginal of the rows of `people`, in the codes that the audit's schema gives its values."""
    shape = [SHAPE[n][0] for n in clique]
    codes = [[SHAPE[n][1](row["abcde".index(n) + 1]) for row in rows] for n in clique]
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=math.prod(shape))


def check_grids(folder: Path, runs: int = 6) -> int:
    """Answers and ledger events of runs with adaptive grids, from the rows of two tables; how many grids."""
    count = 0
    for seed, (selection, noise) in enumerate(itertools.product(GRIDS, (("gaussian", "gdp"), ("laplace", "basic")))):
        for replaced, more in itertools.product((False, True), range(runs // 6)):
            rows = people(100 * seed + more, 30)
            tables = (rows, (*rows[:-1], people(seed + 7, 1)[0]) if replaced else rows[:-1])
            settings = Settings(column=False, replace=replaced, clip="weight", missing="drop", bound=1)
            case = Case(selection, *noise, settings, "plain", 40.0, seed)
            home = folder / "grids"
            first, _ = outcome(case, folder, write_table(home / "d" / "t.csv", tables[0]), None)
            answers = load_measurements(home / "d" / "run" / "release" / "measurements").answers
            second, _ = outcome(case, folder, write_table(home / "e" / "t.csv", tables[1]), first)
            for answer in answers:
                if isinstance(answer.query, GridQuery):
                    draws = (first.draws[answer.event], second.draws[answer.event])
                    event = first.charged[answer.event][0]
                    _check_grid(answer.clique, answer.query, event, draws, tables, case)
                    count += 1
    if not count:
        raise Broken("no run asked an adaptive grid")
    return count


def _check_grid(
    clique: Sequence[str], query: GridQuery, event: Any, draws: Sequence[Draw], tables: Sequence[Any], case: Case
) -> None:
    said = numbers(event)
    rows, one = matrix(query, "l1" if said.norm == "l1" else "l2")
    exact = []
    for draw, table in zip(draws, tables, strict=True):
        cells = counts_of(table, clique).tolist()
        exact.append(sorted((sum(w * cells[c] for c, w in row.items()) << WEIGHT_BITS) for row in rows))
        if exact[-1] != sorted(draw.exact) or 1 << draw.bits != one:
            raise Broken(f"{case.name}: the grid of {' × '.join(clique)} answers otherwise than its matrix")
    power = 1 if said.norm == "l1" else 2
    columns = [[row.get(place, 0) for row in rows] for place in range(query.columns)]
    far = max(sum(w**power for w in column) for column in columns)
    if case.settings.replace:
        pairs = itertools.combinations({tuple(c) for c in columns}, 2)
        far = max(far, *(sum(abs(a - b) ** power for a, b in zip(x, y, strict=True)) for x, y in pairs))
    if far > (Fraction(said.sensitivity) * one) ** power:
        moved = far ** (1 / power) / one
        raise Broken(f"{case.name}: a grid moves by {moved:.6g} in {said.norm}, charged {said.sensitivity:.6g}")


def check_losses(folder: Path, count: int, *, part: tuple[int, int] = (0, 1), words: Collection[str] = ()) -> Losses:
    """Families in so many cases, and grids: see `check_family` and `check_grids`."""
    found = Losses() if words == ["grids"] else families(folder, count, part=part, words=words)
    found.grids = 0 if part[0] or (words and words != ["grids"]) else check_grids(folder)
    return found
