"""The default on four known tables at record level: beside the best named method, and AIM's published errors."""

from __future__ import annotations

from typing import Any

from tests.bench.bench_privsyn import released

#: Table → 2- / 3-way TVD of the best named method at ε = 1, δ = 1/n², before there was a default.
BEST = {
    "adult_codes": "0.0255/0.0604",
    "chicago_taxi": "0.0149/0.0512",
    "fire15": "0.0074/0.0216",
    "acs": "0.0166/0.0368",
}
#: ε → AIM's published mean error of all 3-way marginals of fire15 at δ = 1e-9.
AIM = {0.1: "0.0705", 1.0: "0.026", 10.0: "0.019"}
SEEDS = (0, 1)
CASES = (
    *(f"{name}_seed_{seed}" for name in BEST for seed in SEEDS),
    *(f"fire15_epsilon_{epsilon:g}_seed_{seed}" for epsilon in AIM for seed in SEEDS),
)


def _case(name: str, epsilon: float, delta: float | None, seed: int) -> dict[str, Any] | None:
    seeds = [f"privacy.noise_seed={seed}", f"synthesis.seed={seed}"]
    found = released(name, epsilon, delta, ["selection=auto", "synthesis=auto", *seeds])
    if found is None:
        return None
    reference = f"best named method: {BEST[name]}" if delta is None else f"AIM, 3-way: {AIM[epsilon]}"
    told = "1/n²" if delta is None else f"{delta:g}"
    title = f"the default on {name}, ε = {epsilon:g}, δ = {told}, seed {seed}: {found['name']}"
    return {**found, "name": title, "reference": reference}


def __getattr__(case: str) -> Any:
    """The cases by name."""
    if case not in CASES:
        raise AttributeError(case)
    name, _, seed = case.rpartition("_seed_")
    name, _, epsilon = name.partition("_epsilon_")
    return lambda: _case(name, float(epsilon or 1), 1e-9 if epsilon else None, int(seed))
