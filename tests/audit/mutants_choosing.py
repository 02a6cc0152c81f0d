"""Faults of choosing among releases by noisy distances."""

import shutil
from dataclasses import replace
from typing import Any

import numpy as np

from mechanisms.accounting.accountants.accountant import PrivacyLoss
from tests.audit.mutants import Words, mutant, mutant_maker


@mutant("replay /accept", "distance's sensitivity")
def distance_with_half_its_sensitivity(original: Any, wanted: Any, **named: Any) -> Any:
    """L1 distances are halved to total variation, their noise with them."""
    return original(wanted, **named) / 2


@mutant("replay /accept", "noisy")
def distance_without_noise(original: Any, exact: Any, event: Any, source: Any) -> Any:
    """Only a comparison leaves, so that no noise seems to be needed."""
    if event.id.startswith("accept:"):
        event = type(event)(event.id, event.sensitivity, event.scale * 2.0**-30)
    return original(exact, event, source)


@mutant("replay /accept first", "measured")
def same_noise_in_every_try(original: Any, state: Any, attempt: Any, noise: Any) -> Any:
    """Each try starts the run's generator anew: their differences are exact."""
    return original(state, attempt, Words(lambda event_id: np.random.default_rng([5, *event_id.encode()])))


@mutant("replay /accept first", "coins of tries")
def coins_of_tries_from_a_public_seed(original: Any, state: Any) -> Any:
    """The seed of the synthesis, which may be known, says how many tries there were."""
    words = Words(lambda event_id: np.random.default_rng(state.config.synthesis.seed))
    return state.plan.tries.most_tries(words.stream("coins"))


@mutant("choosing stops", "most tries")
def coins_that_stop_too_seldom(original: Any, selection: Any, words: Any) -> Any:
    """The expected number of tries is twice what is paid for."""
    return original(replace(selection, tries=2 * selection.tries), words)


@mutant("choosing stops", "most tries")
def tries_cut_off_at_a_fixed_number(original: Any, selection: Any, words: Any) -> Any:
    """No more tries than expected: a release that is missing tells that so many failed."""
    return min(original(selection, words), selection.tries)


@mutant("choosing stops", "most tries")
def tries_of_a_fixed_number(original: Any, selection: Any, words: Any) -> Any:
    """As many tries as are set, and no coin."""
    return selection.tries


@mutant("choosing pick", "pick")
def last_accepted_of_all_tries(original: Any, selection: Any, most: int, attempt: Any) -> int | None:
    """All tries are made, and the last that is accepted is taken."""
    verdicts = [(n, attempt(n)) for n in range(1, most + 1)]
    if not selection.threshold:
        return int(original(selection, most, lambda n: verdicts[n - 1][1]) or 0) or None
    return max((n for n, score in verdicts if score is not None), default=None)


@mutant("choosing hidden", "write release")
def number_of_tries_in_the_release(original: Any, folder: Any, *args: Any, **named: Any) -> Any:
    """A log beside the release says how often it was tried."""
    path = original(folder, *args, **named)
    (folder.release / "tries.txt").write_text(str(sorted(p.name for p in folder.internal.glob("tries/*"))))
    return path


@mutant("choosing hidden", "write release")
def rejected_candidates_in_the_release(original: Any, folder: Any, *args: Any, **named: Any) -> Any:
    """The distances of all tries, for the reader."""
    path = original(folder, *args, **named)
    for scores in folder.internal.glob("tries/*/scored.json"):
        shutil.copyfile(scores, folder.release / f"scored-{scores.parent.name}.json")
    return path


@mutant("choosing hidden", "kept table")
def seed_of_the_synthesis_per_try(original: Any, state: Any, attempt: Any, known: Any) -> Any:
    """Only one number of a try gives the released table from the released answers: the try's."""
    seed = (state.config.synthesis.seed or 0) + (attempt.number or 0)
    config = replace(state.config, synthesis=replace(state.config.synthesis, seed=seed))
    return original(replace(state, config=config), attempt, known)


@mutant("choosing hidden", "within")
def threshold_by_the_exact_number_of_rows(original: Any, state: Any, scores: Any) -> bool:
    """A threshold that is a share of the rows moves with the unit."""
    share = state.private.coded.rows / 20
    moved = [
        replace(s, asked=replace(s.criterion, at_most=None if (at := s.criterion.at_most) is None else at * share))
        for s in state.plan.scores
    ]
    design = replace(state.design, plan=replace(state.plan, charges=tuple(moved)))
    return bool(original(replace(state, design=design), scores))


@mutant("choosing bounds", "all tries")
def all_tries_booked_as_one(original: Any, selection: Any, one: Any) -> Any:
    """What is released was tried once, whatever was tried before."""
    return one


@mutant("choosing bounds", "all tries")
def delta_of_one_try_booked(original: Any, selection: Any, one: Any) -> Any:
    """2ε, and δ as of one."""
    return PrivacyLoss(original(selection, one).epsilon, one.delta)


@mutant_maker("choosing bounds", "factor of tries")
def best_of_tries_at_the_price_of_the_first(original: Any) -> Any:
    """2ε hold with a threshold alone (Liu & Talwar 2019); the best of all costs 3ε."""
    return property(lambda selection: min(original.fget(selection), 2))
