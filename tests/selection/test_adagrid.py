"""The selection `adagrid`, of the papers: apart from the contract tests, which run in a tree without these."""

from contextlib import nullcontext

import pytest

from mechanisms.accounting.budget import Budget
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.units import Neighbouring
from mechanisms.selection.base import Facts
from mechanisms.selection.selections import SELECTIONS


@pytest.mark.parametrize(("columns", "said"), [("abcdefgh", ""), ("abcdefghi", "9 columns of which too many parts")])
@pytest.mark.parametrize("chosen", ["closure", "targets"])
def test_grids_of_more_parts_than_a_product_goes_are_refused_before_a_charge(chosen, columns, said):
    schema = parse_schema({"columns": {n: {"kind": "integer", "min": 0, "max": 1} for n in "abcdefghi"}}, where="t")
    facts = Facts(schema, "gaussian", Budget(3.0, 1e-6, "gdp", Neighbouring.ADD_REMOVE, 1))
    given = {"closure": [list(columns)]} if chosen == "closure" else {"targets": list(columns[:-2])}
    selection = SELECTIONS["adagrid"](**given)
    with pytest.raises(UserError, match=said) if said else nullcontext():
        selection.schedule(facts, selection.workload(facts))
