"""What `verify` finds about the noisy answers of a release: each paid for once, and for as far as its query moves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.accounting.events import Exponential, booked_event
from mechanisms.accounting.thresholds import safe_failure, safe_threshold
from mechanisms.public.discovery.discovery_questions import (
    ASSUMED,
    INVENTED,
    OF_UNITS,
    RECORDS,
    VALUES,
    DiscoveryQuestion,
    LeafTree,
    SizeQuestion,
)
from mechanisms.public.files import Json
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.persons.person_questions import by_label, questions_about_units
from mechanisms.public.queries.cell_sums import QUERIES
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.release_files import PERSONS, load_measurements, load_released_schema
from mechanisms.public.schema.fine_cells import MAX_LEAVES
from mechanisms.public.units import WEIGHT_BITS, Neighbouring, joint_sensitivity
from mechanisms.selection.base import FINE_STAGE

#: Released answers lie within ± so many records, on a lattice no finer than 2**-FINEST of them.
LARGEST, FINEST = 2.0**40, WEIGHT_BITS + 16
#: How far two roundings of one number may lie apart.
SLACK = 1e-9

Finding = tuple[bool | None, str]


def receipts_of_answers(statement: Json, index: Json) -> Finding:
    """Every noisy answer has a receipt of its own, with its kind and scale; no total is there for nothing."""
    receipts = {e["id"]: e for e in statement["events"]}
    every = stated_answers(index)
    taken: set[str] = set()
    for answer in every:
        name, paid = " × ".join(answer["clique"]), receipts.get(answer["event"])
        if paid is None:
            return False, f"{name} was never paid for"
        if answer["event"] in taken:
            return False, f"{name} was paid for by a charge that paid for another answer"
        if paid.get("scores") or paid.get("accept"):
            return False, f"{name} was paid for by a charge that paid for scores"
        if paid.get("discovery"):
            return False, f"{name} was paid for by a charge that discovered something"
        if paid.get("answered", True) is not True or paid.get("clique", answer["clique"]) != answer["clique"]:
            return False, f"{name} is not what its receipt was paid for"
        if paid["mechanism"] != answer["noise"] or paid["scale"] != answer["scale"]:
            return False, f"{name} has other noise than its receipt"
        taken.add(answer["event"])
    if (wrong := _unpaid_distances(receipts, index)) is not None:
        return False, wrong
    public = statement["neighbouring"] == Neighbouring.REPLACE and statement["unit"]["column"] is None
    if index.get("public_total") is not None and not public:
        return False, "the number of records is there without noise, and is no public fact"
    return True, f"{len(every)} noisy answers, each with a receipt of its noise"


def stated_answers(index: Json) -> list[Json]:
    """What measurements/index.json says of every answer: of records, of units, and of persons."""
    return [*index["answers"], *([index["histogram"]] if index.get("histogram") else []), *index.get(PERSONS, ())]


def _unpaid_distances(receipts: Json, index: Json) -> str | None:
    """Why noisy distances were not paid for as they stand; None where they were, or where there are none."""
    distances = index.get("distances")
    if distances is None:
        return None
    paid = receipts.get(distances["event"])
    if paid is None or not paid.get("scores") or paid.get("answered") is not True:
        return "distances from independence were never paid for"
    if paid["scores"] != len(distances["cliques"]):
        return f"{len(distances['cliques'])} distances stand where {paid['scores']} were paid for"
    if paid["mechanism"] != distances["noise"] or paid["scale"] != distances["scale"]:
        return "the distances have other noise than their receipt"
    charged = list(receipts)
    before = {*charged[: charged.index(distances["event"])]}
    before |= {e for e, receipt in receipts.items() if receipt.get("stage") == FINE_STAGE}  # asked with the columns
    if sum(a["event"] in before for a in index["answers"]) != distances["answers"]:
        return "the distances are from a model of other answers than those charged before them"
    return None


def sensitivities(release: Path, statement: Json, index: Json) -> Finding:
    """No receipt states a sensitivity below that of its query under C and the neighbouring relation.

    Nor was less booked for an answer than its noise costs.

    Raises:
        UserError: measurements that cannot be read.
    """
    for receipt in statement["events"]:
        booked = receipt.get("booked")
        if booked and (_cheaper(booked, receipt) or booked["mechanism"] != receipt["mechanism"]):
            return False, f"{receipt['id']} was booked as something that costs less than what was used"
    receipts = {e["id"]: e for e in statement["events"]}
    moved = movements(release, statement, index)
    if wrong := moved.misplaced or _low_threshold(statement) or wrong_bound(statement):
        return False, wrong
    for name, least in moved.needed.items():
        paid = receipts[name]["sensitivity"]
        if not least <= paid * (1 + SLACK):
            return False, f"{name} moves by {least:.6g} when one unit changes, not by {paid:.6g}"
    if moved.unknown:
        module = next(p["module"] for p in statement["not_ours"] if p["name"] == moved.unknown[0])
        return None, f"queries {', '.join(moved.unknown)} are not ours, and their module {module} is not loaded"
    most = statement["unit"]["max_records"]
    return True, f"{len(moved.needed)} answers and scores move by no more than their receipts say (C = {most})"


@dataclass(frozen=True)
class UnitMovements:
    """How far answers and scores move when one unit changes.

    Attributes:
        needed: a charge's id → that sensitivity, in records, in the norm of its noise.
        shapes: a charge's id → the cells of its marginal, and how many answers there are.
        unknown: names of query matrices of plugins that are not loaded; their answers are left out.
        misplaced: why what stands for the records per unit is none; empty where it is right, or absent.
    """

    needed: Mapping[str, float]
    shapes: Mapping[str, tuple[int, int]]
    unknown: Sequence[str] = ()
    misplaced: str = ""


def movements(release: Path, statement: Json, index: Json) -> UnitMovements:
    """Computed anew, from the query, C and the neighbouring relation.

    Raises:
        UserError: measurements that cannot be read.
    """
    queries = {str(a["query"]) for a in index["answers"]}
    named = [p for p in statement.get("not_ours") or () if p["kind"] == "query"]
    unknown = sorted(queries & {p["name"] for p in named} - QUERIES.keys())
    relation, most = Neighbouring(statement["neighbouring"]), whole_number(statement["unit"]["max_records"])
    measurements = load_measurements(release / "measurements", without=unknown)
    needed = {e["id"]: _of_scores(e, relation, most) for e in statement["events"] if e.get("accept") or e.get("scores")}
    for a in measurements.answers:
        norm = NOISE_KINDS[a.noise].norm
        needed[a.event] = sensitivity(a.query, norm=norm, neighbouring=relation, max_records=most)
    shapes = {a.event: (a.query.columns, a.query.rows) for a in measurements.answers}
    for receipt in (e for e in statement["events"] if e.get("discovery")):
        name, asked, norm = receipt["id"], question_of(receipt["discovery"]), NOISE_KINDS[receipt["mechanism"]].norm
        needed[name] = asked.sensitivity(norm=norm, neighbouring=relation, max_records=first_bound(statement))
        shapes[name] = asked.shape
    schema = load_released_schema(release / "schema.yaml") if measurements.persons else None
    of_schema = {} if schema is None else by_label(questions_about_units(schema, most))
    for answer in measurements.persons:
        about = of_schema.get(answer.clique)
        if about is None or answer.event != about.event or answer.query != about.query:
            wrong = f"{' × '.join(answer.clique)} is nothing that the schema asks about persons"
            return UnitMovements(needed, shapes, unknown, wrong)
        norm = NOISE_KINDS[answer.noise].norm
        needed[answer.event] = about.sensitivity(norm=norm, neighbouring=relation, max_records=most)
        shapes[answer.event] = (answer.query.columns, answer.query.rows)
    return UnitMovements(needed, shapes, unknown)


def question_of(asked: Json) -> DiscoveryQuestion:
    """What a receipt says was to be discovered; ValueError for a tree that no column has."""
    once = asked.get("constant") is True
    if "cap" in asked:
        lost = INVENTED if asked.get("lost_record") == INVENTED else 1.0
        return DiscoveryQuestion(OF_UNITS, (RECORDS,), sizes=SizeQuestion(whole_number(asked["cap"]), lost))
    if "leaves" not in asked:
        return DiscoveryQuestion(asked["column"], (VALUES,), once=once)
    leaves, specials = whole_number(asked["leaves"]), whole_number(asked["specials"])
    if not 0 < leaves <= MAX_LEAVES or not 0 <= specials <= MAX_LEAVES:
        raise ValueError(f"{leaves:,} leaves of a column, and {specials:,} codes beside them")
    return DiscoveryQuestion(asked["column"], (), LeafTree(leaves, specials), once=once)


def off_lattice(values: ArrayLike) -> bool:
    """Whether an answer is one that no draw leads to: between the points of the lattice, or beyond its range."""
    numbers = np.asarray(values, np.float64)
    steps = np.clip(numbers, -LARGEST, LARGEST) * 2.0**FINEST
    return not ((np.abs(numbers) <= LARGEST).all() and (steps == np.rint(steps)).all())


def bound_again(receipt: Json) -> int:
    """C, from the noisy counts of units in the receipt that paid for them."""
    asked, noisy = receipt["discovery"], receipt["discovery"]["noisy"]
    if noisy is None:
        return ASSUMED
    noise, stddev = float(asked["noise_per_record"]), booked_event(receipt).stddev
    if not 0 <= noise < math.inf or any(isinstance(n, bool) or not math.isfinite(n) for n in noisy):
        raise ValueError("a count of units, or what C costs, is no number")
    if off_lattice(noisy):
        raise ValueError("counts of units that are not on the lattice, or beyond the range of answers")
    sizes = question_of(asked).sizes
    assert sizes is not None, "a receipt with a cap"
    return sizes.chosen(noisy, stddev=stddev, noise=noise)


def bound_receipt(statement: Json) -> Json | None:
    """The charge for counts of units, where C was discovered; None where it was declared."""
    return next((e for e in statement["events"] if "cap" in (e.get("discovery") or {})), None)


def first_bound(statement: Json) -> int:
    """C of what was discovered: that of the release, but where C itself was discovered with it."""
    return whole_number(statement["unit"]["max_records"]) if bound_receipt(statement) is None else ASSUMED


def wrong_bound(statement: Json) -> str:
    """Why C does not follow from the noisy counts that were paid for; empty where it does, or was declared."""
    if (receipt := bound_receipt(statement)) is None:
        return ""
    again = bound_again(receipt)
    if (receipt["discovery"]["noisy"] is None) is (receipt.get("answered") is True):
        return f"{receipt['id']} says that it was answered, or not, and shows the opposite"
    if again != whole_number(statement["unit"]["max_records"]):
        return f"C = {statement['unit']['max_records']}, and the noisy counts of units say {again}"
    return ""


def least_threshold(receipt: Json, statement: Json) -> float:
    """The noisy weight from which on values may be released, from the noise and the part of δ that stands for it."""
    failure = safe_failure(receipt["failure"], statement["budget"]["delta"])
    most = 1 if question_of(receipt["discovery"]).once else first_bound(statement)
    return safe_threshold(receipt["mechanism"], receipt["scale"], failure, most) * 2.0**-WEIGHT_BITS


def _low_threshold(statement: Json) -> str:
    """Which threshold lets through what single units hold; empty where none does."""
    for receipt in statement["events"]:
        asked = receipt.get("discovery") or {}
        if "values" in asked.get("what", ()):
            safe = least_threshold(receipt, statement)
            if not asked["threshold"] >= safe * (1 - SLACK):
                return f"{receipt['id']}: a threshold of {asked['threshold']:.6g}, safe is {safe:.6g}"
    return ""


def _cheaper(booked: Json, used: Json) -> bool:
    """Whether numbers stand for less privacy loss than others of the same mechanism."""
    if used["mechanism"] == Exponential.kind:
        return bool(booked["epsilon"] < used["epsilon"])
    return bool(booked["sensitivity"] < used["sensitivity"] or booked["scale"] > used["scale"])


def _of_scores(receipt: Json, relation: Neighbouring, most: int) -> float:
    """How far distances to fixed tables move together, in records."""
    each = sensitivity(Identity(2), norm="l1", neighbouring=relation, max_records=most)
    if receipt.get("accept"):
        return each
    return joint_sensitivity(each, whole_number(receipt["scores"]), NOISE_KINDS[receipt["mechanism"]].norm)


def accepted(statement: Json, index: Json) -> Finding:
    """The accepted try is within every threshold, by the noisy scores that were paid for.

    The rule by which one of several tries was taken is the one that these thresholds leave.
    """
    scores = [e for e in statement["events"] if e.get("accept")]
    limits = [e["accept"]["at_most"] for e in scores]
    for receipt, limit in zip(scores, limits, strict=True):
        score = receipt["noisy"]
        if limit is not None and (score is None or not score <= limit):
            return False, f"{receipt['id']} allows at most {limit}, and its noisy score is {score}"
    chosen = statement.get("selection")
    by_threshold = bool(limits) and None not in limits
    if chosen is not None and (chosen["threshold"] is True) is not by_threshold:
        how = "with" if chosen["threshold"] else "without"
        return False, f"one of several tries was taken {how} a threshold, which its thresholds do not say"
    return True, "every noisy score is within its threshold" if scores else "no score decided about the release"


def whole_number(value: Any) -> int:
    """A whole number as it stands in a file.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"got {value!r} where a whole number stands")
    return value
