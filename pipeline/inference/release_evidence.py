"""What is asked of a release again and again, made once: small marginals, and the columns that distances were from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import hypot, inf

from mechanisms.public.candidates import Expected
from mechanisms.public.designs.deviations import side_error
from mechanisms.public.domain import Clique
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.release import Measurements, NoisyDistances
from pipeline.inference.marginal_estimates import NOTHING, MarginalEstimate, marginal_estimate
from synthesis.independent import independent_marginals


@dataclass(eq=False)
class ReleaseEvidence:
    """The answers and distances of a release.

    Attributes:
        measurements: what crossed the wall.
    """

    measurements: Measurements
    _small: dict[Clique, MarginalEstimate | None] = field(default_factory=dict, repr=False)

    def estimate(self, clique: Clique) -> MarginalEstimate | None:
        """A marginal, as of `marginal_estimate`; that of no column is the number of records."""
        if len(clique) > 1:
            return marginal_estimate(self.measurements, clique)
        if clique not in self._small:
            self._small[clique] = marginal_estimate(self.measurements, clique)
        return self._small[clique]

    @property
    def total(self) -> MarginalEstimate | None:
        """The number of records; None without any answer."""
        return self.estimate(NOTHING)

    def distance(self, clique: Clique) -> tuple[NoisyDistances, int] | None:
        """The released distances, and the place among them of a marginal all of whose cells were compared; or None."""
        distances = self.measurements.distances
        if distances is None or clique not in self._places or not distances.whole[self._places[clique]]:
            return None
        return distances, self._places[clique]

    @cached_property
    def _places(self) -> Mapping[Clique, int]:
        distances = self.measurements.distances
        return {} if distances is None else {c: i for i, c in enumerate(distances.cliques)}

    @cached_property
    def compared(self) -> Measurements:
        """The answers from before the distances were drawn."""
        distances = self.measurements.distances
        before = self.measurements.answers[: 0 if distances is None else distances.answers]
        return replace(self.measurements, answers=before, distances=None)

    @cached_property
    def independent(self) -> Expected:
        """The independent columns that the released distances are from."""
        return independent_marginals(self.compared)

    @cached_property
    def side_errors(self) -> Mapping[str, float]:
        """Per column about how far those independent columns are from the true one-way counts, in records, in L1.

        The product of two columns is no further from the product of the true ones than both sides together (triangle
        inequality), and no distance from it is.
        """
        noise = {a.clique: a.mean_abs for a in self.compared.answers}
        names = self.measurements.domain.names
        return {n: side_error(self.independent((n,)), noise.get((n,), inf)) for n in names}

    def distance_error(self, clique: Clique) -> float:
        """The standard error of a released distance, as one from the product of the true one-way counts, in records.

        It holds the noise of the distance and that of the one-way counts. The release must have distances.
        """
        distances = self.measurements.distances
        assert distances is not None
        own = NOISE_KINDS[distances.noise].stddev * distances.scale
        return hypot(own, sum(self.side_errors[n] for n in clique))
