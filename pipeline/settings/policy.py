"""What a release is warned about: budgets beyond what is usual, and units that are split."""

from __future__ import annotations

from shlex import quote

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.text_forms import ID_NAME, PERSON_ID_COLUMN
from mechanisms.public.units import ID_RULES
from mechanisms.selection.auto import AutoSettings
from mechanisms.sensitive.contribution import PrivacyUnit
from pipeline.settings.config import ReleaseConfig
from pipeline.settings.specs import Specs

#: Above this ε, one unit may change the odds of any event by more than e¹⁰ ≈ 22,000.
LARGEST_EPSILON = 10.0
#: δ is a probability that the promise fails altogether; it should be far below 1 / number of units.
LARGEST_DELTA = 1e-5

#: What is wrong with a schema that has the column of the unit among its own.
IDS_MEASURED = "names the unit of privacy, and the schema has its ids measured and released like any other values"


def budget_warnings(epsilon: float, delta: float) -> tuple[str, ...]:
    """What a person should know about a large budget, a sentence each; nothing for a usual one."""
    warnings = []
    if epsilon > LARGEST_EPSILON:
        warnings.append(
            f"ε = {epsilon:g} is above {LARGEST_EPSILON:g}: the formal promise is very weak; one unit may change the "
            "odds of what is released by a factor of e^ε"
        )
    if delta > LARGEST_DELTA:
        warnings.append(
            f"δ = {delta:g} is above {LARGEST_DELTA:g}: with that probability nothing is promised; δ should be far "
            "below 1 / number of units"
        )
    return tuple(warnings)


def id_warnings(schema: Schema, unit: PrivacyUnit) -> tuple[str, ...]:
    """A sentence where ids of the unit are measured, or where a row is the unit and what is left out is called an id.

    It follows from public facts.
    """
    if unit.column in [c.name for c in schema.columns]:
        return (f"the column {unit.column!r} {IDS_MEASURED}; instead, leave_out: [{unit.column}]",)
    ids = [n for n in schema.leave_out if ID_NAME.search(n)] if unit.column is None else []
    persons = sorted(ids, key=lambda n: not PERSON_ID_COLUMN.search(n))
    fixes = {n: f"{quote(f'privacy.unit={n}')} privacy.max_records=C protects all rows of one" for n in persons[:1]}
    return tuple(f"each row alone is protected; {n!r} looks like an id: {fix}" for n, fix in fixes.items())


def two_tables(release: ReleaseConfig, schema: Schema) -> bool:
    """Whether persons and their records are released as two tables.

    Raises:
        UserError: the schema declares nothing that is constant in a person.
    """
    two = release.tables == "two"
    if two and (schema.rules.unit is None or not schema.rules.unit.constant):
        fix = "release.tables=joined; or in the schema unit: {column: COLUMN, constant: [COLUMN], records: {max: C}}"
        raise UserError("the schema declares no constants of persons", where="release.tables", fix=fix)
    return two


def unit_warnings(unit: PrivacyUnit) -> tuple[str, ...]:
    """A sentence where a rule for ids was taken away: one person may then count as several units."""
    apart = [words for rule, words in ID_RULES.items() if rule not in unit.rules]
    if unit.column is None or not apart:
        return ()
    bound = "so that one person may have C records under each spelling (privacy.unit_id_rules)"
    return (f"ids that differ in {'; or '.join(apart)} count as different units, {bound}",)


def replaced_choice(specs: Specs, schema: Schema) -> tuple[str, ...]:
    """Where the accountant leaves the default selection no choices, a sentence that says so."""
    selection = specs.selection
    asked = [specs.config.selection.options.get(name) for name in ("marginals", "closure", "k", "weights", "merge")]
    if not isinstance(selection, AutoSettings) or any(value is not None for value in asked):
        return ()
    if selection.given(specs.facts(schema)) is None:
        return ()
    return (
        f"privacy.accountant={specs.budget.accountant} with mechanism={specs.mechanism} cannot count choices "
        "that follow from answers: all pairs are measured at once, as in selection=pairs; privacy.accountant=gdp can",
    )
