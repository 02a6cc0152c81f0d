"""Li et al. 2021b (DPSyn), Appendix A: updates, decays and appending of GUM, in numbers that follow from the text."""

import math

import numpy as np
import pytest

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from pipeline.settings.config import load_config
from pipeline.settings.methods import build_synthesizer
from synthesis.consistency.agree import ConsistentTargets, Target
from synthesis.gum.gradual_update import UpdateWork, shrink_factor
from synthesis.gum.gum_settings import GumSpec
from synthesis.gum.layout import lay_out

PEOPLE = Domain((Attribute("income", 2), Attribute("gender", 2), Attribute("age", 3)))
PAIR = ("income", "gender")


def preset() -> GumSpec:
    spec = build_synthesizer(load_config(["synthesis=gum_paper"]).synthesis)
    assert isinstance(spec, GumSpec)
    return spec


def work(*rows: tuple[int, ...], times: int = 1, seed: int = 0) -> UpdateWork:
    columns = tuple(np.repeat(np.array(c, np.uint8), times) for c in zip(*rows, strict=True))
    return UpdateWork.start(CodedTable(PEOPLE, columns), np.random.default_rng(seed))


def test_figure_4_two_of_five_records_change_at_alpha_2_and_duplicates_keep_the_age():
    """Figure 4: 4 and 1 of 5 records, wanted 1 and 4; α = 2 and β = 0.5 make 2 and 3 of them."""
    five = [(1, 0, 0), (1, 0, 1), (1, 0, 1), (1, 0, 0), (1, 1, 2)]  # income; male, female; teenager, adult, elderly
    target = Target(PAIR, np.array([[0.0, 0.0], [0.2, 0.8]]), 1.0)
    for replace, elderly in ((0.0, 300), (0.5, 200), (1.0, 100)):  # Duplicate: all are as v5
        rows, many = work(*five), work(*five, times=100)
        moved, off = rows.update(target, alpha=2.0, replace=replace, as_paper=True)
        assert (moved, off) == (2, pytest.approx(0.6))
        assert list(rows.counts(PAIR)) == [0, 0, 2, 3]
        many.update(target, alpha=2.0, replace=replace, as_paper=True)
        women = many.counts(("gender", "age"))[3:]
        assert women.sum() == 300 and women[2] == pytest.approx(elderly, abs=2)
    assert shrink_factor(np.array([3.0]), np.array([4]), 2.0) == pytest.approx(0.5)


def test_an_empty_cell_grows_by_nothing_as_the_formula_says_and_by_a_part_of_its_target_in_ours():
    """A.2: min(n_t − n_s, α n_s) is 0 where n_s is; with target 50 and α = 0.2 ours adds 10."""
    target = Target(PAIR, np.array([[50.0, 0.0], [50.0, 0.0]]), 1.0)
    for as_paper, grown in ((True, 0), (False, 10)):
        rows = work((1, 0, 0), times=100)
        rows.update(target, alpha=0.2, replace=1.0, as_paper=as_paper)
        assert rows.counts(PAIR)[0] == grown


def test_a_cell_grows_by_a_factor_of_at_most_one_and_alpha_and_others_shrink_in_one_proportion():
    """Section 5.5: "each cell will increase by a factor of at most 1 + α"; A.2: min(n_s − n_t, β n_s)."""
    rows = work((0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1), times=100)
    target = Target(PAIR, np.array([[200.0, 170.0], [40.0, 190.0]]), 1.0)
    rows.update(target, alpha=0.2, replace=0.5, as_paper=True)
    assert list(rows.counts(PAIR)) == [120, 120, 170, 190], "β = 0.15: 30 of the 160 too many, and all 10 of the others"


def test_the_four_decays_are_those_of_section_a_3():
    step = GumSpec(alpha=0.2, schedule="step", decay=0.84, step=10)
    assert [step.growth(t) for t in (0, 9, 10, 25)] == pytest.approx([0.2, 0.2, 0.2 * 0.84, 0.2 * 0.84**2])
    assert GumSpec(alpha=0.2, schedule="exponential", rate=0.1).growth(5) == pytest.approx(0.2 * math.exp(-0.5))
    assert GumSpec(alpha=0.2, schedule="linear", rate=0.1).growth(5) == pytest.approx(0.2 / 1.5)
    assert GumSpec(alpha=0.2, schedule="sqrt", rate=0.1).growth(5) == pytest.approx(0.2 / math.sqrt(1.5))


def test_the_preset_is_the_appendix_and_nothing_of_ours():
    spec = preset()
    assert spec.alpha == 0.2 and spec.schedule == "step" and spec.start == "oneway" and spec.descents == 0
    assert spec.updates == "paper" and spec.lone == "once"
    assert GumSpec(replace=1, replace_last=1).replaced(7) == 1, "Replace alone"
    assert spec.replaced(0) > spec.replaced(50) > spec.replaced(spec.iterations - 1) == 0, (
        "more Duplicate towards the end"
    )


def test_columns_of_degree_one_are_appended_once():
    """A.3: of the chain a-b-c-d-e the ends stand in one marginal each; ours takes the whole tree off, end by end."""
    domain = Domain(tuple(Attribute(n, 2) for n in "abcde"))
    chain = tuple(Target((a, b), np.full((2, 2), 25.0), 1.0) for a, b in zip("abcd", "bcde", strict=True))
    targets = ConsistentTargets(domain, 100.0, chain)
    once, again = (lay_out(targets, again=a) for a in (False, True))
    assert {n for part in once.appended for n in part.lone} == {"a", "e"}
    assert [names for names, _ in once.groups] == [("b", "c", "d")]
    assert not again.groups and {n for part in again.appended for n in part.lone} == set("abcde")
