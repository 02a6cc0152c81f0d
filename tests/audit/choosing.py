"""What it costs to choose among tries: every short sequence of outcomes, the coins' law, and the exact worst case."""

import itertools
import json
import math
import shutil
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import chi2

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.bookings import load_book
from mechanisms.accounting.private_selection import PrivateSelection
from mechanisms.public.arrays import Floats, Ints
from pipeline import stages
from tests.audit.cases import ACCEPT, Case, config_of, plan_of
from tests.audit.hooks import Broken, current
from tests.audit.replay import difference, outcome
from tests.audit.sampling import RARE
from tests.audit.tape import Tape
from tests.audit.tight import Bound
from tests.audit.totals import textbook, tries_of
from tests.audit.worlds import RECORDS, make_world, write_table

#: What rounding in this file may add.
LOOSE = 1e-9


def check_pick(length: int = 5) -> int:
    """On every sequence of outcomes the try that is taken is the first accepted, or the first of the best."""
    outcomes = [2.0, 1.0, None, 0.5]
    count = 0
    for threshold, size in itertools.product((True, False), range(1, length + 1)):
        selection = PrivateSelection(3, threshold)
        for tries in itertools.product(outcomes, repeat=size):
            best = min((t for t in tries if t is not None), default=None)
            wanted = [t is not None and (threshold or t == best) for t in tries]
            right = wanted.index(True) + 1 if any(wanted) else None
            if selection.pick(size, lambda number, tries=tries: tries[number - 1]) != right:  # type: ignore[misc]
                raise Broken(f"of the tries {tries} another one is taken than number {right}")
            count += 1
    return count


def check_stops(size: int) -> float:
    """The number of tries that the coins allow is geometric, with no end; the least p-value."""
    least = 1.0
    for tries in (3, 40):
        selection, source = PrivateSelection(tries, True), current("source")(21)
        words = source.stream(f"stop:{tries}")
        found = np.array([selection.most_tries(words) for _ in range(size)])
        edges = np.unique(np.geomspace(1, 12 * tries, 30).astype(np.int64))
        ends = np.append((1 - 1 / tries) ** (edges - 1.0), 0.0)  # P[N ≥ edge]
        expected = -np.diff(ends) * size
        counts = np.bincount(np.searchsorted(edges, found, side="right") - 1, minlength=edges.size)
        kept = expected > 5
        gaps = np.append(counts[kept] - expected[kept], counts[~kept].sum() - expected[~kept].sum())
        value = float(chi2.sf((gaps**2 / np.append(expected[kept], expected[~kept].sum())).sum(), kept.sum()))
        if value < RARE:
            raise Broken(f"the coins stop otherwise than with probability 1/{tries} each (p = {value:.2g})")
        least = min(least, value)
    return least


@dataclass(frozen=True)
class Try:
    """The outcomes of one try on two neighbours.

    Attributes:
        left, right: their probabilities.
        ranks: of each outcome's score, smaller is better; with a threshold, rank 0 is accepted and all else is not.
    """

    left: Floats
    right: Floats
    ranks: Ints


def worst_tries(epsilon: float, delta: float, tries: int, threshold: bool) -> Try:
    """Outcomes that come close to the bound: one that is released, and others that end the tries (decision 031)."""
    grow, small = math.exp(epsilon), 1e-3
    often = 0.99 / (1 + grow)  # so that the rest moves by no more
    if delta:  # with probability δ an outcome that tells the two apart, and always wins
        return Try(np.array([delta, 1 - delta]), np.array([0.0, 1.0]), np.array([0, 1]))
    left, right = np.array([small * grow, often]), np.array([small, often * grow])
    ranks = np.array([0, 0, 1]) if threshold else np.array([1, 0, 2])
    return Try(np.append(left, 1 - left.sum()), np.append(right, 1 - right.sum()), ranks)


def random_try(epsilon: float, delta: float, rng: np.random.Generator) -> Try:
    """A random (ε, δ)-DP try: a random function of the pair that leads to all of them (Kairouz et al. 2015)."""
    grow = math.exp(epsilon)
    extreme = np.array([delta, (1 - delta) * grow / (1 + grow), (1 - delta) / (1 + grow), 0.0])
    outcomes = int(rng.integers(2, 6))
    shift = rng.dirichlet(np.full(outcomes, 0.3), 4)
    return Try(extreme @ shift, extreme[::-1] @ shift, rng.integers(0, 3, outcomes))


def chosen(probabilities: Floats, ranks: Ints, tries: int, threshold: bool) -> Any:
    """The law of what is released, summed over the tries; the last entry: nothing is.

    The coins stop after each try with probability 1/tries; the sums end where less than 1e-18 is left.
    """
    stop = 1 / tries
    rounds = np.arange(1, math.ceil(42 / -math.log1p(-stop)) + 1)
    reached = np.exp((rounds - 1) * math.log1p(-stop))  # P[there may be so many]
    if threshold:
        refused = probabilities[ranks > 0].sum()
        found = np.where(ranks > 0, 0.0, probabilities * (reached * refused ** (rounds - 1.0)).sum())
        return np.append(found, max(1 - found.sum(), 0.0))
    found = np.zeros_like(probabilities)
    for rank in set(ranks.tolist()):
        better, equal = probabilities[ranks < rank].sum(), probabilities[ranks == rank].sum()
        if equal <= 0:
            continue
        with np.errstate(divide="ignore"):  # log 0: no other score there is
            worse, fallen = math.log1p(-min(better, 1.0)), np.log1p(-min(better + equal, 1.0))
        best = np.exp(rounds * worse) * -np.expm1(rounds * (fallen - worse))
        found += np.where(ranks == rank, probabilities / equal, 0.0) * (reached * stop * best).sum()
    return np.append(found, 0.0)


def delta_at(epsilon: float, one: Floats, two: Floats) -> float:
    """The exact δ of two laws at ε, in the worse direction."""
    grow = math.exp(epsilon)
    return float(max(np.maximum(one - grow * two, 0).sum(), np.maximum(two - grow * one, 0).sum()))


def check_claim(case: Try, loss: PrivacyLoss, tries: int, threshold: bool) -> tuple[float, float, PrivacyLoss]:
    """The exact log ratio and the exact δ of what is released, and what the code claims."""
    claim = PrivateSelection(tries, threshold).total(loss)
    one, two = (chosen(p, case.ranks, tries, threshold) for p in (case.left, case.right))
    delta = delta_at(claim.epsilon, one, two)
    if delta > claim.delta * (1 + LOOSE) + 1e-13:
        what = f"{'first accepted' if threshold else 'best'} of about {tries} tries at {loss}"
        raise Broken(f"{what}: δ is {delta:.4g} at ε = {claim.epsilon:.6g}, claimed {claim.delta:.4g}")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(np.log(one[(one > 0) & (two > 0)] / two[(one > 0) & (two > 0)]))
    return float(ratios.max(initial=0.0)), delta, claim


def selection_bounds() -> Iterator[Bound]:
    """The worst case of choosing among 1,000 tries, exactly, against what is stated."""
    tries = 1000
    for threshold, name in ((True, "the first accepted"), (False, "the best")):
        ratio, _, claim = check_claim(worst_tries(1.0, 0.0, tries, threshold), PrivacyLoss(1.0, 0.0), tries, threshold)
        yield Bound(f"choosing {name} of tries, exactly", "ε", claim.epsilon, ratio, 0)
        loss = PrivacyLoss(1.0, 1e-8)
        _, delta, claim = check_claim(worst_tries(1.0, 1e-8, tries, threshold), loss, tries, threshold)
        yield Bound(f"choosing {name} of tries, exactly", "δ", claim.delta, delta, 0)


def check_random_tries(count: int, seed: int = 3) -> int:
    """Random private tries, each chosen from exactly, against the claim."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        epsilon, delta = float(rng.uniform(0.05, 3)), float(rng.choice([0.0, 1e-6, 1e-3, 0.02]))
        tries, threshold = int(rng.choice([1, 2, 3, 10, 40])), bool(rng.integers(2))
        if tries > 1:
            check_claim(random_try(epsilon, delta, rng), PrivacyLoss(epsilon, delta), tries, threshold)
    return count


def _case(accept: str, selection: str = "pairs") -> Case:
    return Case(selection, "gaussian", "gdp", RECORDS, "plain", 8.0, 3, accept)


def _tables(folder: Path) -> list[Path]:
    world = make_world(RECORDS, 3)
    tables = [world.table, *world.neighbours[:1]]
    return [write_table(folder / "choosing" / f"{i}" / "t.csv", rows) for i, rows in enumerate(tables)]


def _one_try(case: Case, folder: Path, table: Path, seed: int) -> Tape:
    """What the first try of a run draws, under the events' own names."""
    tape, first = outcome(replace(case, seed=seed), folder, table, None)[0], "" if case.accept == "once" else "0001/"
    draws = {d.event.id: d for name, d in tape.draws.items() if name == first + d.event.id}
    choices = {c.event.id: c for name, c in tape.choices.items() if name == first + c.event.id}
    return Tape(draws=draws, choices=choices)


def _frozen(case: Case, *tries: tuple[Tape, float]) -> Tape:
    """A tape of these tries, one after the other, each with that noisy distance, after which the coin stops."""
    made = Tape(most=len(tries))
    for number, (tape, score) in enumerate(tries, start=1):
        prefix = "" if case.accept == "once" else f"{number:04}/"
        for name, draw in tape.draws.items():
            answer = np.full(1, score) if name.startswith("accept:") else draw.answer
            made.draws[prefix + name] = replace(draw, answer=answer)
        made.choices |= {prefix + name: choice for name, choice in tape.choices.items()}
    return made


def check_hidden(folder: Path, accepts: Collection[str] = ("once", "first", "best"), tables: int = 2) -> int:
    """A release has the same bytes whether it was the first try or a later one, and whatever the others were.

    And with distances at the threshold and right above it: what decides are the distance and the setting alone.
    """
    count = 0
    for accept, table in itertools.product(accepts, _tables(folder)[:tables]):
        case, limit = _case(accept), ACCEPT[accept][1][0].get("at_most", 9.0)
        above = math.nextafter(limit, math.inf)
        good, bad = (_one_try(case, folder, table, seed) for seed in (3, 4))
        alone = outcome(case, folder, table, _frozen(case, (good, limit)))[1]
        if not isinstance(alone, dict):
            raise Broken(f"{accept}: a distance of {limit}, as large as it may be, is not accepted: {alone}")
        if accept != "best" and isinstance(outcome(case, folder, table, _frozen(case, (good, above)))[1], dict):
            raise Broken(f"{accept}: a distance above {limit} is accepted")
        if accept != "once":
            later = outcome(case, folder, table, _frozen(case, (bad, above), (good, limit), (bad, above)))[1]
            if later != alone:
                raise Broken(f"{accept}: the release tells that it was not the first try: {difference(alone, later)}")
        count += 1
    return count


def check_booked(folder: Path) -> int:
    """A run of several tries books, and says that it cost, what all of them may cost together; how many runs."""
    for accept in ("once", "first", "best"):
        case, root = _case(accept), folder / "choosing" / "run"
        path = folder / "choosing" / "budget.jsonl"
        path.unlink(missing_ok=True)
        shutil.rmtree(root, ignore_errors=True)
        config = config_of(case, folder, _tables(folder)[0])
        if "at_most" in config.accept[0]:
            config.accept[0]["at_most"] = 1e9
        config = replace(config, budget=replace(config.budget, ledger=str(path), limit={"epsilon": 9, "delta": 1e-4}))
        plan, (factor, tries) = plan_of(config), tries_of(config)
        epsilon, delta = textbook(plan.events, plan.accountant.kind, config.privacy.delta / tries)
        stages.run(config, root, quiet=True)
        said = json.loads((root / "release" / "privacy.json").read_text(encoding="utf-8"))
        book = load_book(path)
        booked = book.bookings[-1].spend
        for what, loss in (("booked", asdict(booked)), ("said", said["budget"]), ("spent", said["spent"])):
            if loss["epsilon"] < factor * epsilon * (1 - LOOSE) or loss["delta"] < tries * delta * (1 - LOOSE):
                raise Broken(f"accept {accept}: {what} ({loss['epsilon']:.6g}, {loss['delta']:.3g})")
    return 3
