"""What (ε, δ) allows an attack that tells members from others: the bounds that stand beside its figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

#: Steps of the lower sum under a trade-off curve.
STEPS = 2_000


@dataclass(frozen=True)
class AttackPromise:
    """The promise of a release, for the unit that an attack acts on, where a unit more or less is what it covers.

    The bounds are those of one unit, over releases with it and without it. An attack that ranks several units of one
    release can win more on average, though no AUC above 1 less the trade-off curve at ½: two units that change places
    are two steps. Of 10 units of either side an AUC of 0.740 is possible at ε = 1, where one unit has 0.731; the
    difference falls with their number.

    Attributes:
        pairs: (ε, δ) that hold all, the stated one first.
    """

    pairs: tuple[tuple[float, float], ...]

    @property
    def advantage(self) -> float:
        """The largest true less false positive rate, the least of (e^ε − 1 + 2δ) / (e^ε + 1) (Kairouz et al. 2015)."""
        # (e^ε − 1) / (e^ε + 1) is tanh(ε/2), and 2 / (e^ε + 1) what it lacks of 1
        of_epsilon = ((math.tanh(e / 2), d) for e, d in self.pairs)
        return min(1.0, *(t + d * (1 - t) for t, d in of_epsilon))

    @cached_property
    def auc(self) -> float:
        """The largest area under the ROC curve: 1 less the area under the trade-off curve, by a lower sum.

        The curve is the largest of max(0, 1 − δ − e^ε a, e^−ε (1 − δ − a)) at a false positive rate of a (Dong et al.
        2019). It falls, so that its values at the right ends of the steps are below it.
        """
        heights = (max(_missed(i / STEPS, *pair) for pair in self.pairs) for i in range(1, STEPS + 1))
        return min(max(1 - math.fsum(heights) / STEPS, 0.5), 1.0)

    def to_json(self) -> dict[str, float]:
        """JSON values."""
        epsilon, delta = self.pairs[0]
        return {"epsilon": epsilon, "delta": delta, "advantage": self.advantage, "auc": self.auc}


def _missed(false_positives: float, epsilon: float, delta: float) -> float:
    """The least share of members that is missed at a false positive rate."""
    steep = 1 - delta - math.exp(min(epsilon, 700.0)) * false_positives
    return max(0.0, steep, math.exp(-epsilon) * (1 - delta - false_positives))
