"""How many persons have 1, 2, … records, from answers of noise alone: a run has been charged, and must end."""

from types import SimpleNamespace

import numpy as np
import pytest

from mechanisms.public.persons.person_features import Trait
from synthesis.persons.person_sizes import all_records, persons_by_size


@pytest.mark.parametrize(("most", "bound"), [(1, 1), (3, 1), (5, 2), (20, 4), (20, 20)])
@pytest.mark.parametrize("total", [0, 1, 5, 1000])
def test_sizes_of_noise_alone_account_for_every_record(most, bound, total):
    """Where fewer records count than a person has, a histogram that another answer pulled below 0 was divided by 0."""
    for seed in range(4):
        rng, sd = np.random.default_rng(seed), 60.0
        own = SimpleNamespace(
            values=rng.normal(0, sd, most) + np.r_[20, np.zeros(most - 1)],
            stddev=sd,
            kinds=lambda: (Trait.RECORDS,),
            by_size=False,
        )
        beside = SimpleNamespace(
            values=rng.normal(-100, sd, (most, 4)),
            stddev=sd / 10,
            kinds=lambda: (Trait.RECORDS, Trait.MEAN),
            by_size=True,
            possible=np.ones((most, 4), bool),
            question=SimpleNamespace(features=(SimpleNamespace(groups=tuple(range(most))),)),
        )
        assert total <= all_records([own, beside], most, total, bound) <= total * most
        sizes = persons_by_size([own, beside], most, total)
        assert (sizes >= 0).all() and sizes @ np.arange(1, most + 1) == total
