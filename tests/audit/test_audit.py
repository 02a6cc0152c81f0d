"""The quick part of the audit; `make audit` runs the whole."""

from functools import cached_property
from pathlib import Path

import pytest

from tests.audit import choosing, protocol
from tests.audit.beside import BESIDE, check_beside
from tests.audit.cases import FEW, check_registry, write_public
from tests.audit.catch import CHECKS, MUTANTS, caught
from tests.audit.hooks import POINTS, Broken, point
from tests.audit.losses import FAMILIES, families
from tests.audit.rates import check_rates, rates
from tests.audit.replay import replay
from tests.audit.sampling import check_law, check_streams, check_tails, laws
from tests.audit.tight import audits
from tests.audit.totals import recomputed
from tests.audit.whole import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("audit")
    write_public(found)
    return found


#: A selection's case with each kind of question that the first cases do not ask: words of its name.
WORDS = (
    ("pairs", ["accept best"]),
    ("mwem", ["histogram"]),
    ("public", ["replace"]),
    ("oneway", ["discover"]),
    ("pairs", ["records"]),
)


def test_neighbours_with_the_same_answers_give_the_same_release(folder):
    some = FEW[::6]
    tally = replay(folder, most=len(some), choices=some)
    assert tally.pairs == len(some) and tally.answers > 20 and 0.9 < max(tally.largest.values()) <= 1


@pytest.mark.some(3)
@pytest.mark.parametrize(("selection", "words"), WORDS)
def test_so_do_the_questions_that_few_cases_ask(folder, selection, words):
    tally = replay(folder, most=1, choices=[selection], words=words, few="discover" not in words)
    assert tally.pairs and max(tally.largest.values()) <= 1
    assert "discover" not in words or "ValuesQuestion" in tally.largest


def test_what_is_chosen_among_tries_costs_what_is_claimed():
    assert choosing.check_pick(4) and choosing.check_stops(10_000) and choosing.check_random_tries(100)
    for bound in choosing.selection_bounds():
        bound.check()


@pytest.mark.slow
def test_a_release_does_not_tell_how_many_tries_there_were(folder):
    assert choosing.check_hidden(folder, ("first",), tables=1) == 1


def test_a_selection_that_no_case_runs_is_told():
    with pytest.raises(Broken, match="ran the selection tarot"):
        check_registry({"selection": {"fixed"}}, {"selection": {"fixed", "tarot"}})


def test_totals_are_what_others_compute(folder):
    found = recomputed(folder, 5, seed=3)
    assert found.plans == 5


def test_white_box_audits_reach_what_is_stated_and_no_more():
    for audit in audits(cells=25_000, draws=6_000, runs=0):
        audit().check()


@pytest.mark.parametrize("kind", laws())
def test_draws_follow_their_law_on_the_lattice_and_far_out(kind):
    check_law(kind, 200_000)
    check_tails(kind, 1_000_000)


def test_no_two_streams_of_noise_are_alike():
    assert check_streams() == 9


def test_a_run_that_is_cut_off_or_cheated_on_spends_nothing_twice(folder):
    assert (
        protocol.check_swapped_answers(folder) == 2
        and protocol.check_ledger(folder) == 4
        and protocol.check_statements(folder) == 3
    )


def test_a_row_more_changes_no_other_row_s_coin_and_the_coins_are_a_secret():
    assert protocol.check_aside(40) == 40


def test_a_bound_that_is_discovered_follows_from_noisy_counts_alone(folder):
    assert protocol.check_bound(folder) == 3
    check, found = caught(MUTANTS["c chosen from exact sizes of units"], folder)
    assert check == "protocol" and "speak for C" in found


@pytest.mark.some(2)
@pytest.mark.parametrize("name", sorted(set(BESIDE) - {"ids", "tables"}, reverse=True))
def test_what_stands_beside_one_run_holds(folder, name):
    ((_, found, _),) = check_beside(folder, [name])
    assert int(found) > 2


def test_whole_runs_cost_one_unit_and_families_what_is_stated(folder):
    found = families(folder, 2)
    assert found.pairs == 2 * len(FAMILIES) and 0.9 < max(found.largest.values()) <= 1 + 1e-9


@pytest.mark.slow
def test_published_bounds_are_held_against_the_rows(folder):
    found = rates(folder, 6, words=["indif"])
    assert {"bound, measured", "interval, mean"} <= {kind for kind, *_ in check_rates(found)}
    found.held["bound, measured"] = [0.5, 0.7, 0.6] * 10
    with pytest.raises(Broken, match="bound, measured: holds in 60"):
        check_rates(found)


@pytest.mark.slow
def test_the_stop_at_lost_values_comes_before_any_charge_and_changes_nothing_else(folder):
    went, refused = protocol.check_refusals(folder, 6)
    assert went and refused


#: Faults that are caught in a moment, one or more per check, a third of which always; the whole audit shows all.
QUICK = (
    *("gaussian noise 30 percent too small", "laplace noise 30 percent too small", "choice of the largest score"),
    *("ties round to even", "seed shared by workers", "count forgotten in composition", "budget split above one"),
    *("delta spent by each", "kept answer of another question", "fixed seed called private"),
    *("charge after the draw", "exact row count released", "coins of tries from a public seed"),
    *("best of tries at the price of the first", "discovery left out of the total"),
    *("threshold without the term of delta", "a unit counted more than once per value"),
    *("one bucket moves where a unit is replaced", "ledger that forgets who charged"),
    *("new draws under the old booking", "sensitivity of a plugin by hand", "answers that nobody paid for"),
    *("draft that lists single persons texts", "links of a foreign release are followed"),
    *("words about discovery taken as they stand", "clipped values counted nowhere"),
    *("grid moves 30 percent further than charged", "a family costs what one unit costs"),
)


@pytest.mark.some(3)
@pytest.mark.parametrize("name", QUICK)
def test_a_known_fault_is_caught(folder, name):
    check, found = caught(MUTANTS[name], folder)
    assert check in CHECKS and found


def test_there_are_faults_enough_and_all_names_exist():
    assert len(MUTANTS) >= 100
    assert all(m.fault and m.likely.split()[0] in CHECKS for m in MUTANTS.values())
    for name in POINTS:
        assert callable(point(name)[2]) or isinstance(point(name)[2], property | cached_property | classmethod), name


def test_the_readme_states_how_many_known_faults_there_are():
    assert f"plants {len(MUTANTS)} faults" in (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_whole_audit_holds(tmp_path):
    assert main([str(tmp_path / "AUDIT.md")]) == 0
    assert "every check below holds" in (tmp_path / "AUDIT.md").read_text(encoding="utf-8")
