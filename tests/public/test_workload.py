"""Which marginals are measured follows from public facts alone."""

import math

import pytest

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.workload import all_k_way, closure, explicit, reweighted

TOWN = Domain((Attribute("age", 4, 4), Attribute("sex", 2), Attribute("job", 10), Attribute("street", 100)))


def test_explicit_marginals_are_measured_exactly_and_in_domain_order():
    workload = explicit(TOWN, [["sex", "age"], ["job"], ["job"]], max_cells=100)
    assert workload.cliques == (("age", "sex"), ("job",), ("job",))


def test_the_closure_holds_every_subset_once():
    workload = closure(TOWN, [["age", "sex", "job"], ["sex", "job"]], max_cells=1000)
    assert len(workload.cliques) == 7
    assert len(set(workload.cliques)) == 7
    assert workload.cliques[:3] == (("age",), ("sex",), ("job",))


def test_paper_003_counts_66_marginals_with_seven_copies():
    """Adaptive Granularity Mechanism, marginal selection: 7 outer marginals, their closure, 7 extra copies: 66."""
    names = [
        *("shift", "company_id", "pickup", "dropoff", "payment_type", "fare", "tips", "trip_total", "trip_seconds"),
        "trip_miles",
    ]
    taxi = Domain(tuple(Attribute(n, 2) for n in names))
    pairs = ["fare trip_total", "trip_total trip_seconds", "dropoff fare", "payment_type trip_total", "fare trip_miles"]
    outer = [*pairs, "company_id", "tips trip_total"]
    workload = closure(taxi, [["shift", "pickup", *o.split()] for o in outer], max_cells=10**6)
    assert len(workload.cliques) + 7 == 66


def test_all_k_way_leaves_out_what_is_too_large_and_says_so():
    workload = all_k_way(TOWN, [1, 2], max_cells=100)
    assert len(workload.cliques) + len(workload.left_out) == 4 + math.comb(4, 2)
    assert all(TOWN.cells(c) > 100 for c in workload.left_out)
    assert ("street",) in workload.cliques


def test_weights_apply_to_every_copy():
    workload = explicit(TOWN, [["sex"], ["sex"], ["age"]], max_cells=100)
    assert reweighted(TOWN, workload, [(["sex"], 3.0)]).weights == (3.0, 3.0, 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: explicit(TOWN, [["agee"]], max_cells=9), "did you mean 'age'"),
        (lambda: explicit(TOWN, [["age", "age"]], max_cells=9), "stands twice"),
        (lambda: explicit(TOWN, [["job", "street"]], max_cells=9), "selection.max_cells"),
        (lambda: explicit(TOWN, ["age"], max_cells=9), "list of lists"),
        (lambda: explicit(TOWN, [[]], max_cells=9), "list of lists"),
        (lambda: all_k_way(TOWN, [5], max_cells=9), "1 to 4"),
        (lambda: all_k_way(TOWN, [2], max_cells=1), "no marginal has at most 1 cells"),
        (lambda: reweighted(TOWN, explicit(TOWN, [["sex"]], max_cells=9), [(["age"], 2.0)]), "not among the selected"),
        (lambda: reweighted(TOWN, explicit(TOWN, [["sex"]], max_cells=9), [(["sex"], 0.0)]), "above 0"),
    ],
)
def test_a_mistake_names_the_setting_and_the_way_out(make, message):
    with pytest.raises(UserError, match=message):
        make()
