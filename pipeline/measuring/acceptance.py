"""Whether a release is accepted: noisy scores decide, in one try or in several; what is not accepted is withheld.

The candidates' own tables of one try are written and removed here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.events import as_noise
from mechanisms.accounting.ledger import Ledger
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.files import stored_values, whole_file, write_whole
from mechanisms.public.release import STATEMENT_VERSION, Measurements, noisy_figure
from mechanisms.public.release_files import DAMAGED
from mechanisms.public.rules.engineering import engineer
from mechanisms.public.rules.fine_columns import without_fine
from mechanisms.public.units import plain_digits
from mechanisms.sensitive.measurement import check_clipped
from mechanisms.sensitive.noise import NoiseSource, noise_source
from mechanisms.sensitive.private_choice import exact_distance, noisy_distance
from pipeline.measuring.attempts import check_answers, measured, synthesized
from pipeline.run_context import Attempt, State, Taken, present
from pipeline.statement.statement import unit_fields, why_not_private
from synthesis.consistency.agree import estimate_total


class Withheld(UserError):
    """The release was not accepted: nothing is published, and what it cost stays spent."""


def settle(state: State) -> Taken:
    """Try until a release is accepted, or none is; kept answers, tables and scores are taken as they are.

    A run without `accept` has one try, and takes it.

    Guarantee: what comes out (the try that is taken, or that there is none) costs `selection.total` of the plan's
        (ε, δ); how many tries there were, and what became of the others, is NOT private.
    Raises:
        Withheld: no try is accepted.
    """
    selection = state.plan.tries
    if not selection.several:
        taken = _tried(state, Attempt(state.folder.internal))
        check_answers(taken.measurements, state.plan, taken.ledger, state.show)
        if _within(state, taken.scores):
            return taken
        raise _withheld(state, _figures(state, taken.scores))
    tried: dict[int, Taken] = {}
    with state.show.held_back():  # a line per stage would tell how many tries there were
        winner = selection.pick(_most_tries(state), lambda n: _verdict(state, _attempt(state, n), tried))
        accepted = None if winner is None else tried.get(winner) or _tried(state, _attempt(state, winner))
    if accepted is None:
        raise _withheld(state, "no try was accepted before a secret coin stopped them")
    for other in state.folder.internal.glob("tries/*/candidate.npz"):
        if other != accepted.attempt.table:
            other.unlink()
    return accepted


def _attempt(state: State, number: int) -> Attempt:
    return Attempt(state.folder.internal / "tries" / f"{number:04}", number)


def _verdict(state: State, attempt: Attempt, tried: dict[int, Taken]) -> float | None:
    """The first score of a try that is accepted, kept ones as they are; what was made for them goes to `tried`."""
    if attempt.scores.exists():
        scores: Sequence[float | None] = stored_values(attempt.scores, list)
    else:
        taken = _tried(state, attempt)
        if state.plan.tries.threshold:
            tried.clear()
        tried[attempt.number or 1], scores = taken, taken.scores
    if _within(state, scores):
        return scores[0]
    attempt.table.unlink(missing_ok=True)
    return None


def table_of(state: State, taken: Taken) -> tuple[CodedTable, np.random.Generator]:
    """The synthetic table to release, and the source of what is drawn when it is written."""
    if state.plan.scores:
        return scored_table(state, taken.attempt, taken.measurements)
    rng = np.random.default_rng(state.config.synthesis.seed)
    return synthesized(state, taken.measurements, rng), rng


def _tried(state: State, attempt: Attempt) -> Taken:
    """One try: measure, and where scores decide synthesize, keep the table, and only then ask how far it is off."""
    attempt.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    noise = noise_source(attempt.seed(state.config.privacy.noise_seed))
    measurements, ledger = measured(state, attempt, noise)
    if not (measurements.answers and state.plan.scores):  # nothing decides; or all is lost, and makes no table
        return Taken(ledger, measurements, scores=(None,) * len(state.plan.scores), attempt=attempt)
    scores = stored_values(attempt.scores, lambda: _scored(state, attempt, measurements, ledger, noise))
    return Taken(ledger, measurements, scores=tuple(scores), attempt=attempt)


def _scored(
    state: State, attempt: Attempt, measurements: Measurements, ledger: Ledger, noise: NoiseSource
) -> tuple[float | None, ...]:
    synthetic, _ = scored_table(state, attempt, measurements)
    unit = state.schema.rules.unit
    scaled = state.config.synthesis.rows is not None or (unit is not None and unit.counted is not None)
    scale = estimate_total(measurements) / synthetic.rows if scaled and synthetic.rows else 1.0
    check_clipped(private := present(state.private), state.plan.budget)
    rows = without_fine(private.coded, state.schema)
    with state.show.stage("accept"):
        # The published rows, as the loader would see them: the schema's steps make the columns that are measured.
        table = engineer(synthetic, state.schema.engineering)[0] if state.schema.engineering.steps else synthetic
        return tuple(
            noisy_distance(
                planned,
                lambda p=planned: exact_distance(rows, table, p.criterion, scale=scale),  # type: ignore[misc]
                ledger,
                noise,
                budget=state.plan.budget,
                path=attempt.root / f"accept-{planned.criterion.place}.json",
            )
            for planned in state.plan.scores
        )


def _within(state: State, scores: Sequence[float | None]) -> bool:
    """Whether every noisy score is at most what its criterion says; one that was lost is not."""
    limits = [s.criterion.at_most for s in state.plan.scores]
    return all(
        limit is None or (score is not None and score <= limit) for score, limit in zip(scores, limits, strict=True)
    )


def _most_tries(state: State) -> int:
    """How many tries the coins allow: drawn once, before the first of them, and kept under internal/.

    Raises:
        UserError: there was a try, and the number is gone: other coins would let through what these stopped.
    """
    path = state.folder.internal / "tries" / "most.json"
    if not path.exists() and any(path.parent.glob("*/ledger.jsonl")):
        fix = "a new run, with its own budget"
        raise UserError("how many tries the coins allow is gone", where=str(path), fix=fix)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    coins = noise_source(state.config.privacy.noise_seed)
    return int(stored_values(path, lambda: state.plan.tries.most_tries(coins.stream("accept:stop"))))


def _figures(state: State, scores: Sequence[float | None]) -> str:
    """The noisy scores of a single try against what they had to be: they are part of what it paid for."""
    figures = []
    for planned, score in zip(state.plan.scores, scores, strict=True):
        limit = planned.criterion.at_most
        if limit is not None:
            lost = f"was charged and lost, at most {plain_digits(limit)}"
            value = lost if score is None else noisy_figure(score, as_noise(planned.event).stddev, limit)
            figures.append(f"{planned.criterion.title}: {value}")
    return "; ".join(figures)


def _withheld(state: State, why: str) -> Withheld:
    """What stays of it: the cost, under internal/ for whoever adds up what was spent."""
    plan, config = state.plan, state.config
    reasons = why_not_private(state.schema, config.privacy.noise_seed, confirmed=config.data.confirmed_public)
    spent = plan.tries.total(PrivacyLoss(plan.budget.epsilon, plan.loss.delta))
    facts = {
        "version": STATEMENT_VERSION,
        "private": not reasons,
        "unit": unit_fields(present(state.private).unit),
        "neighbouring": str(plan.budget.neighbouring),
        "guarantee": {"epsilon": spent.epsilon, "delta": spent.delta},
    }
    write_whole(state.folder.withheld, json.dumps(facts, indent=1) + "\n", mode=0o600)
    fix = "a new run that spends its own budget, with a larger at_most or a larger ε; this one's stays spent"
    return Withheld(f"the release was not accepted and is withheld ({why})", where="accept", fix=fix)


def scored_table(state: State, attempt: Attempt, measurements: Measurements) -> tuple[CodedTable, np.random.Generator]:
    """The try's table as it was scored, or will be, and the source of what is drawn when it is written.

    It is on disk before anything is asked about it: a score belongs to one table for good.

    Raises:
        UserError: it was scored, and is not there any more.
    """
    # A seed of synthesis is no secret: were it another one for each try, the table would betray the try's number.
    rng = np.random.default_rng(state.config.synthesis.seed)
    if attempt.table.exists():
        return _load_table(attempt.table, rng), rng
    if attempt.scores.exists() or any(attempt.root.glob("accept-*.json")):
        fix = "a new run, with its own budget"
        raise UserError("the table that was accepted is gone", where=str(attempt.table), fix=fix)
    synthetic = synthesized(state, measurements, rng)
    facts = {"domain": [asdict(a) for a in synthetic.domain.attributes], "rng": rng.bit_generator.state}
    arrays: dict[str, Any] = {"facts": np.array(json.dumps(facts))}
    arrays |= {f"{i:04}": column for i, column in enumerate(synthetic.columns)}
    with whole_file(attempt.table, mode=0o600) as part, part.open("wb") as file:
        np.savez(file, **arrays)
    return synthetic, rng


def _load_table(path: Path, rng: np.random.Generator) -> CodedTable:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            facts = json.loads(str(arrays["facts"]))
            domain = Domain(tuple(Attribute(**a) for a in facts["domain"]))
            rng.bit_generator.state = facts["rng"]
            return CodedTable(domain, tuple(arrays[f"{i:04}"] for i in range(len(domain))))
    except DAMAGED as error:
        fix = "a new run, with its own budget"
        raise UserError(f"the kept table is damaged ({error})", where=str(path), fix=fix) from error
