"""What was discovered, planned anew from the charges and the schema of a release: no word about it stands alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.planned_discovery import plan_discovery
from mechanisms.public.discovery.unit_sizes import MADE_UP, OF_UNITS
from mechanisms.public.discovery.wanted import Wanted
from mechanisms.public.json_values import Json, JsonDict
from mechanisms.public.schema.leaf_bins import nothing_found
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.units import Neighbouring
from pipeline.statement.paid_answers import bound_again, bound_receipt, first_bound, question_of
from pipeline.statement.stated_plan import CALIBRATED, one_try

Receipt = Json


def discovered_again(statement: Json, schema: Schema) -> dict[str, JsonDict]:
    """Each charge → what its receipt has to say; its noisy counts, and whether it was lost, stand as they are.

    Args:
        schema: of the release, which says what of each column was discovered.
    Raises:
        ValueError: charges of no columns; a tree that none has; a charge that was lost, of a column that was found out.
    """
    receipts = [e for e in statement["events"] if e.get("discovery")]
    if not receipts:
        return {}
    order, named = [OF_UNITS, *schema.domain.names], [e["discovery"]["column"] for e in receipts]
    if named != [name for name in order if name in named]:
        raise ValueError("what was discovered stands in another order than the columns, or is none of them")
    again = _planned(receipts, statement, schema, pairs=False)
    if (paid := bound_receipt(statement)) is not None:
        stated, facts = paid["discovery"], again[paid["id"]]["discovery"]
        paired = _planned(receipts, statement, schema, pairs=True)[paid["id"]]["discovery"]["noise_per_record"]
        facts |= {"noisy": stated["noisy"], "chosen": bound_again(paid)}
        if len(receipts) > 1:  # what C costs was planned before the sizes of the columns were known
            facts["noise_per_record"] = stated["noise_per_record"]
        elif math.isclose(stated["noise_per_record"], paired, rel_tol=CALIBRATED):  # settings say whether pairs count
            facts["noise_per_record"] = paired
    return again


def _planned(receipts: Sequence[Receipt], statement: Json, schema: Schema, *, pairs: bool) -> dict[str, JsonDict]:
    """The same charges by a plan of our own: each one's id → its receipt, but for its cost."""
    most, neighbouring = one_try(statement), Neighbouring(statement["neighbouring"])
    budget = Budget(most.epsilon, most.delta, statement["accountant"], neighbouring, first_bound(statement))
    plan = plan_discovery(
        [_wanted(e, schema) for e in receipts],
        budget,
        share=round(math.fsum(e["share"] for e in receipts), 12),  # thirds may sum to more than the whole
        mechanism=receipts[0]["mechanism"],
        cells=[a.size for a in schema.synthesized.attributes],
        pairs=pairs,
    )
    planned = [c.to_json(plan.accountant) for c in plan.charges]
    return {
        m["id"]: {**{k: v for k, v in m.items() if k != "cost"}, "answered": e.get("answered") is True}
        for m, e in zip(planned, receipts, strict=True)
    }


def _wanted(receipt: Receipt, schema: Schema) -> Wanted:
    """The question, from the column as it was released."""
    asked = question_of(receipt["discovery"])
    unit = schema.rules.unit
    if asked.sizes is not None:
        return replace(asked, sizes=replace(asked.sizes, lost=1.0 if unit is None else MADE_UP))
    name, tree = asked.column, asked.tree
    column, once = schema[name], unit is not None and name in unit.constant
    if receipt.get("answered") is not True and not nothing_found(column, 0 if tree is None else tree.leaves):
        raise ValueError(f"{name} was found out, and its charge is said to be lost")
    if tree is not None:
        tree = type(tree)(tree.leaves, column.size - column.value_codes)
    return Wanted(name, column.discovered if tree else asked.what, tree, once=once)
