"""Faults of composition, calibration, charges, and of what is written down."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mechanisms.accounting.events import Exponential
from mechanisms.accounting.ledger import Ledger
from mechanisms.public.errors import UserError
from tests.audit.hooks import numbers
from tests.audit.mutants import mutant, mutant_maker

TOTALS, REPLAY = "totals", "replay"
LOSSES = ("basic loss", "advanced loss", "zcdp loss", "gdp loss")


@mutant(TOTALS, *LOSSES)
def count_forgotten_in_composition(original: Any, self: Any, events: Any) -> Any:
    """Events of equal numbers count once, however many there are."""
    return original(self, list({(n := numbers(e)).kind + f"{n.sensitivity}/{n.scale}": e for e in events}.values()))


@mutant_maker(TOTALS, "calibrate", *LOSSES)
def histogram_left_out_of_the_total(original: Any) -> Any:
    """What is measured on the side is not part of the budget, which the marginals have to themselves."""
    if original.__name__ == "loss":
        return lambda self, events: original(self, [e for e in events if not e.id.startswith("units:")])

    def calibrate(charges: Any, *budget: Any, **named: Any) -> Any:
        rest = [c for c in charges if not c.id.startswith("units:")]
        return (*original(rest, *budget, **named), *original(charges, *budget, **named)[len(rest) :])

    return calibrate


@mutant_maker(TOTALS, "calibrate", *LOSSES)
def discovery_left_out_of_the_total(original: Any) -> Any:
    """Bounds and values are found out first, and the marginals have the budget to themselves."""
    if original.__name__ == "loss":
        return lambda self, events: original(self, [e for e in events if not e.id.startswith("discovery:")])
    return lambda charges, *budget, **named: original(charges, *budget)


@mutant(TOTALS, *LOSSES)
def choices_left_out_of_the_total(original: Any, self: Any, events: Any) -> Any:
    """Only what is measured is paid for, not what chose it."""
    return original(self, [e for e in events if not isinstance(e, Exponential)])


@mutant_maker(TOTALS, "delta of each")
def delta_spent_by_each(original: Any) -> Any:
    """Every Gaussian event is calibrated with the whole δ."""
    return property(lambda self: self.delta)


@mutant_maker(TOTALS, "loss range")
def laplace_noise_taken_as_a_choice(original: Any) -> Any:
    """ρ = ε²/8 for Laplace noise, whose loss has a range of 2ε."""
    return property(lambda self: self.epsilon_alone)


@mutant(TOTALS, "zcdp conversion")
def conversion_with_a_factor_lost(original: Any, rho: Any, delta: Any) -> Any:
    """ε = ρ + √(2 ρ ln 1/δ)."""
    return rho + math.sqrt(2 * rho * math.log(1 / delta))


@mutant(TOTALS, "gaussian mu", "gaussian epsilon")
def classical_formula_above_one(original: Any, value: float, delta: float) -> float:
    """σ = √(2 ln 1.25/δ) Δ/ε holds for ε below 1 alone."""
    root = math.sqrt(2 * math.log(1.25 / delta))
    return value / root if original.__name__ == "gaussian_mu" else value * root


@mutant(TOTALS, "gaussian epsilon")
def calibration_ends_on_the_wrong_side(original: Any, mu: Any, delta: Any) -> Any:
    """The search for ε stops a little below the root."""
    return original(mu, delta) * (1 - 1e-5)


@mutant(TOTALS, "calibrate")
def budget_split_above_one(original: Any, charges: Any, budget: Any, **named: Any) -> Any:
    """The parts of the budget sum to more than the whole."""
    return original(charges, replace(budget, epsilon=1.25 * budget.epsilon), **named)


@mutant(TOTALS, "one try")
def tries_for_free(original: Any, selection: Any, epsilon: Any, delta: Any) -> Any:
    """The best of several releases, at the price of one."""
    return (epsilon, delta)


@mutant(REPLAY, "charge")
def charge_kept_in_memory(original: Any, ledger: Any, event: Any) -> Any:
    """A charge that a crash forgets."""
    return ledger.events.__setitem__(event.id, event)


@mutant_maker(REPLAY, "charge")
def charge_after_the_draw(original: Any) -> Any:
    """Noise first: the charge is written when the next one comes."""
    late: list[Any] = []

    def charge(ledger: Any, event: Any) -> None:
        if late:
            original(ledger, late.pop())
        late.append(event)
        ledger.events[event.id] = event

    return charge


@mutant(REPLAY, "charge")
def charge_of_other_noise(original: Any, ledger: Any, event: Any) -> None:
    """What is written down has more noise than what is drawn."""
    kept = dict(ledger.events)
    choice = isinstance(event, Exponential)
    weaker = replace(event, epsilon=event.epsilon / 2) if choice else event.with_sensitivity(0.0)
    ledger._append({"event": weaker.to_json()})
    ledger.events.update(kept | {event.id: event})


@mutant("protocol ledger", "charge")
def ledger_that_never_refuses(original: Any, ledger: Any, event: Any) -> None:
    """Charges are written down, and added up by nobody."""
    ledger._append({"event": event.to_json()})
    ledger.events[event.id] = event


@mutant_maker("protocol cut", "open ledger")
def lost_charge_drawn_again(original: Any) -> Any:
    """A run that goes on charges anew what has no answer, and draws it a second time."""

    def opened(cls: Any, path: Any, plan: Any, facts: Any = None, **named: Any) -> Any:
        ledger = original.__func__(cls, path, plan, facts, **named)
        kept = {i: e for i, e in ledger.events.items() if len(ledger.events) < 2 or i != list(ledger.events)[-1]}
        ledger.events = kept
        return ledger

    return lambda *args, **named: opened(Ledger, *args, **named)


@mutant("protocol swapped", "answer fits")
def kept_answer_of_another_question(original: Any, question: Any, answer: Any) -> Any:
    """Any file in the answer's place is taken for the answer."""
    return True


@mutant("protocol ledger", "reserved")
def dearer_event_under_a_slot(original: Any, plan: Any, event: Any) -> Any:
    """A slot admits whatever has its name."""
    return next((s.event for s in plan.slots if s.event.id == event.id), event)


@mutant("protocol statements", "statement")
def fixed_seed_called_private(original: Any, schema: Any, plan: Any, own: Any, *rest: Any, **named: Any) -> Any:
    """Whoever knows the seed subtracts the noise, and the statement says nothing of it."""
    return original(schema, plan, replace(own, fixed=False), *rest, **named)


@mutant("protocol statements", "statement")
def drafted_schema_called_private(original: Any, schema: Any, *rest: Any, **named: Any) -> Any:
    """Bounds and categories that nobody confirmed."""
    return original(replace(schema, confirmed_public=True), *rest, **named)


class _Seen:
    """The exact table of the run."""

    table: Any = None


def _seeing(measure_plan: Any) -> Any:
    """Measures, and keeps the exact table in sight."""

    def measure(rounds: Any, **named: Any) -> Any:
        _Seen.table = rounds.table
        return measure_plan(rounds, **named)

    return measure


@mutant_maker(REPLAY, "measure plan", "default rows")
def synthetic_rows_as_many_as_real_ones(original: Any) -> Any:
    """The default number of synthetic rows is the exact number of rows."""
    if original.__name__ == "default_rows":
        return lambda measurements: _Seen.table.coded.rows

    return _seeing(original)


@mutant_maker("replay mst", "measure plan", "rare groups")
def categories_by_exact_counts(original: Any) -> Any:
    """Rare values are merged by their exact counts."""
    if original.__name__ == "rare_groups":

        def groups(domain: Any, known: Any, threshold: float, floor: float = 0.0) -> Any:
            exact = []
            for answer in known:
                if len(answer.clique) == 1:
                    codes = _Seen.table.coded.columns[domain.index(answer.clique[0])]
                    counts = [float((codes == i).sum()) for i in range(answer.query.columns)]
                    exact.append(replace(answer, values=np.array(counts)))
            return original(domain, exact, threshold, floor)

        return groups

    return _seeing(original)


@mutant_maker(REPLAY, "measure plan", "write release")
def scores_left_in_the_release(original: Any) -> Any:
    """A file beside the others that was computed from the rows."""
    if original.__name__ == "write_release":

        def write(folder: Any, *args: Any, **named: Any) -> Any:
            path = original(folder, *args, **named)
            (folder.release / "score.txt").write_text(str([int(c.sum()) for c in _Seen.table.coded.columns]))
            return path

        return write

    return _seeing(original)


@mutant(REPLAY, "measure plan")
def refusal_by_an_exact_count(original: Any, rounds: Any, **named: Any) -> Any:
    """A run stops where too few rows hold a value."""
    if rounds.table.coded.rows % 2:
        raise UserError("too few rows", where="data", fix="more of them")
    return original(rounds, **named)
