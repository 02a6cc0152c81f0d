"""The stage before the plan of the rest: what the schema leaves open is asked with noise, and becomes concrete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

from mechanisms.accounting.events import as_noise
from mechanisms.accounting.plan import PlannedCharge
from mechanisms.public.arrays import Floats
from mechanisms.public.discovery.discovered_columns import discovered_schema
from mechanisms.public.discovery.discovery_questions import ASSUMED, OF_UNITS
from mechanisms.public.files import JsonDict
from mechanisms.public.tables.losses import losses_of
from mechanisms.sensitive.contribution import UnitRows
from mechanisms.sensitive.measurement import ValueWeights, value_weights
from mechanisms.sensitive.measurement import discover as discover_with_noise
from mechanisms.sensitive.noise import noise_source
from pipeline.load_stage import read_rows
from pipeline.run_context import Discovered, State, present
from pipeline.settings.design import concrete
from pipeline.stage_bars import unplaced_lines

#: Under internal/: the answers, one file each.
ANSWERS = "discovery"


def discover(state: State) -> State:
    """What the schema leaves open is asked with noise; then the design is that of the rest, and the rows are read anew.

    Guarantee: that of the plan of what is discovered.
    """
    design, show, plan = state.design, state.show, state.design.plan.discovery
    if plan is None:
        return state
    answers = discovered(state)
    bound = None if answers.bound is None else answers.bound["chosen"]
    design = concrete(design.specs, answers.schema, plan, bound)
    show.warn(design.gave_way)
    state = replace(state, design=design, discovered=answers)
    with show.stage("load again") as report:
        private = read_rows(state, design.schema, report)
    show.warn_privately(unplaced_lines(private.encoding))
    # what discovered bounds cut off is lost too
    return replace(state, private=private, losses=losses_of(private.encoding, design.schema))


def discovered(state: State) -> Discovered:
    """Ask what the schema leaves open, answers that are kept as they are.

    Guarantee: that of the plan.
    """
    schema, plan = state.design.schema, present(state.design.plan.discovery)
    private, source = present(state.private), present(state.source)
    charges = plan.of("discover")
    folder, holdout, show = state.folder, state.config.evaluation.holdout, state.show

    @cache
    def weights() -> dict[str, ValueWeights]:
        """Column → how much each of its values weighs, of columns whose values are discovered."""
        by_column: dict[str, ValueWeights] = {}
        asked = [c.discovery_question for c in charges if c.discovery_question.of_values]
        for most in sorted({w.most for w in asked}):  # one value of a constant, C of others
            columns, unit = [schema[w.column] for w in asked if w.most == most], replace(private.unit, max_records=most)
            table = UnitRows(source, unit, folder.temporary / ANSWERS)
            by_column |= value_weights(
                table, columns, key=state.key, norm=plan.norm, holdout=holdout, engine=state.engine
            )
        return by_column

    with show.stage("discover") as report:
        ledger = state.opened_ledger(folder.ledger, plan)
        noise = noise_source(state.config.privacy.noise_seed)
        ask = partial(discover_with_noise, private, weights, ledger, noise, answers_dir=folder.internal / ANSWERS)
        answers = ask(histogram=private.histogram, progress=report)
        scales = {c.discovery_question.column: as_noise(c.event).scale for c in charges}
        whole = discovered_schema(schema, answers, kind=plan.noise, scales=scales) if schema.to_discover else schema
    if lost := [name for name, answer in answers.items() if answer is None]:
        problem = f"what was asked about {', '.join(lost)} is spent without an answer"
        show.warn([f"{problem} (a crash between charge and draw)"])
    answered = frozenset(c.event.id for c in charges if answers[c.discovery_question.column] is not None)
    asked = next((c for c in charges if c.discovery_question.sizes is not None), None)
    return Discovered(whole, plan, answered, None if asked is None else discovered_bound(asked, answers[OF_UNITS]))


def discovered_bound(charge: PlannedCharge, answer: Floats | Sequence[str] | None) -> JsonDict:
    """How many records of a unit count, C, as noisy counts of units say: these, per bucket, and what they chose.

    Where they were charged and lost, it is the assumed one.
    """
    sizes, noise = charge.discovery_question.sizes, charge.discovery_question.noise
    assert sizes is not None
    if answer is None:
        return {"noisy": None, "chosen": ASSUMED}
    noisy = [float(n) for n in answer]
    return {"noisy": noisy, "chosen": sizes.chosen(noisy, stddev=as_noise(charge.event).stddev, noise=noise)}
