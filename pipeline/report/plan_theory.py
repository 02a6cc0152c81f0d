"""What sections 4 to 6 of Li et al. 2021b say about a number of rows: how many marginals, which δ, how useful."""

from __future__ import annotations

import math

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.currencies import gaussian_mu
from mechanisms.accounting.plan import Plan
from mechanisms.public.files import JsonDict
from mechanisms.public.noise_kinds import KINDS, upper_quantile
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.text_table import lined_up
from mechanisms.public.units import plain_digits

#: Tables so many times as large, and standard deviations of a cell as a share of the rows (section 6.1 names 10⁻⁵).
TIMES = (0.1, 1, 10, 100)
ERRORS = (1e-5, 1e-3)
#: Shares of the rows by which an answer may be wrong (the δ of (δ, η)-useful), and η.
WRONG = (1e-4, 1e-3, 1e-2)
ETA = 0.05


def theory(plan: Plan, budget: Budget, rows: int) -> JsonDict:
    """JSON values; the budget is that of all tries of the plan.

    - marginals: how many of them can be published with a cell's standard deviation at most a share of the rows: of pure
      ε-DP by Laplace noise under basic composition ∝ n, of (ε, δ)-DP by Gaussian noise ∝ n² (sections 4 and 6.1).
    - delta: whether δ ≤ 1/n², as the challenge of 2018 asked (section 5.1).
    - useful: of each share of the rows, the least ε with which any pure method can be (share, η)-useful for so many
      candidates (`least_epsilon`), and the share that the plan's own noise keeps to (section 6.2).
    """
    epsilon, delta, most = budget.epsilon, budget.delta, budget.max_records
    moves = {"l1": budget.sensitivity(Identity(2), "l1"), "l2": budget.sensitivity(Identity(2), "l2")}
    mu = gaussian_mu(epsilon, delta) if delta else None
    planned = plan.to_json()["measurements"]
    counted = [m for m in planned if m.get("cells") and not m.get("scores") and m.get("mechanism") in KINDS]
    cells = sum(int(m["cells"]) for m in counted)
    tail = ETA / (2 * max(cells, 1))  # one noisy count is off by more, on either side, with this probability
    off = [float(m["scale"]) * upper_quantile(m["mechanism"], tail) for m in counted]
    return {
        "rows": rows,
        "epsilon": epsilon,
        "delta": {"delta": delta, "one_by_n_squared": rows**-2, "holds": delta <= rows**-2},
        "marginals": [
            {
                "times": times,
                "rows": int(rows * times),
                "stddev": error,
                "pure": pure_marginals(error * rows * times, epsilon, moves["l1"]),
                "approximate": None if mu is None else gaussian_marginals(error * rows * times, mu, moves["l2"]),
            }
            for times in TIMES
            for error in ERRORS
        ],
        "useful": {
            "eta": ETA,
            "candidates": cells,
            "any_pure_method": [
                {"wrong": wrong, "epsilon": least_epsilon(wrong, ETA, cells, rows, most)} for wrong in WRONG
            ],
            "plan": max(off, default=0.0) / rows if cells else None,
        },
    }


def pure_marginals(stddev: float, epsilon: float, moves: float) -> int:
    """How many marginals fit into ε where each has Laplace noise of that standard deviation: ⌊ε·σ / (√2·Δ₁)⌋."""
    return math.floor(epsilon * stddev / (math.sqrt(2) * moves))


def gaussian_marginals(stddev: float, mu: float, moves: float) -> int:
    """How many marginals fit into μ-GDP where each has Gaussian noise of that standard deviation: ⌊(μ·σ / Δ₂)²⌋."""
    return math.floor((mu * stddev / moves) ** 2)


def least_epsilon(wrong: float, eta: float, candidates: int, rows: int, max_records: int) -> float:
    """The ε below which no pure method is (wrong, η)-useful for so many candidates, by packing.

    (δ, η)-useful (Bhaskar et al. 2010, in section 6.2): with probability 1 − η it puts out every candidate whose share
    of the rows is above some θ + δ, and none below θ − δ. Of a table with none above θ − δ a method puts out nothing
    with probability 1 − η. For each of M candidates another table, g = ⌈(2δn + 2) / C⌉ units away, has that one above
    θ + δ and no other; there it puts out that one alone with probability 1 − η. These M outputs exclude each other, so
    that M (1 − η) e^(−εg) ≤ η. The source prints no formula; Zeng et al. 2012 prove a bound of this kind.
    """
    units = math.ceil((2 * wrong * rows + 2) / max_records)
    return max(0.0, math.log(max(candidates, 1) * (1 - eta) / eta) / units)


def theory_in_words(facts: JsonDict) -> list[str]:
    """For people: two tables, and what each row of them is."""
    delta = facts["delta"]
    sign, bound = "at most" if delta["holds"] else "above", f"1/n² = {delta['one_by_n_squared']:.3g}"
    return [
        f"what Li et al. 2021b (DPSyn, sections 4 to 6) say of n = {facts['rows']:,} rows, whatever is measured:",
        f"  δ = {delta['delta']:.3g} is {sign} {bound}, the most that the challenge of 2018 allowed",
        *_marginals_in_words(facts),
        *_useful_in_words(facts),
    ]


def _marginals_in_words(facts: JsonDict) -> list[str]:
    """How many marginals tables of several sizes allow at the plan's ε, without and with δ."""
    delta = facts["delta"]["delta"]
    with_delta = f"marginals if δ = {delta:.3g}" if delta else "marginals if δ > 0"
    words = {1: "this table", 0.1: "a tenth of it"}
    sizes = [words.get(r["times"], f"{r['times']:g} times it") for r in facts["marginals"]]
    heads = ["rows", "noise of a cell, in records", "marginals if δ = 0", with_delta]
    cells = [
        [
            f"{size}: {r['rows']:,}",
            f"{plain_digits(r['stddev'] * r['rows'])} ({r['stddev']:g} of the rows)",
            f"{r['pure']:,}",
            "–" if r["approximate"] is None else f"{r['approximate']:,}",
        ]
        for size, r in zip(sizes, facts["marginals"], strict=True)
    ]
    return [
        f"  marginals that can be measured at ε = {facts['epsilon']:g}, if a cell's noise is such a share of the rows:",
        *(f"    {line}" for line in lined_up([heads, *cells])),
        "    noise: its standard deviation; δ = 0: Laplace noise, as many as n (ten times the rows: ten times them),",
        "    δ > 0: Gaussian noise, as many as n² (ten times the rows: a hundred times them)",
    ]


def _useful_in_words(facts: JsonDict) -> list[str]:
    """The least ε of any method without δ, and what the plan's own noise keeps to."""
    useful, delta = facts["useful"], facts["delta"]["delta"]
    if not useful["candidates"]:
        return []
    heads = ["cells further from that share than", "least ε of any method with δ = 0"]
    cells = [[f"{r['wrong']:g} of the rows", f"{r['epsilon']:.3g}"] for r in useful["any_pure_method"]]
    bound = f"δ = {delta:.3g}, so that this does not bind it" if delta else "δ = 0: this binds it too"
    return [
        f"  to say which of {useful['candidates']:,} cells hold more than some share of the rows, and be right about",
        f"  all that are further from it, with probability {1 - useful['eta']:g} (section 6.2):",
        *(f"    {line}" for line in lined_up([heads, *cells])),
        f"    this plan has {bound}; its known counts are off by at most {useful['plan']:.3g} of the rows",
    ]
