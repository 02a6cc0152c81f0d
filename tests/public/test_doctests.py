"""The examples in the docstrings of the small algebra run as they stand."""

import doctest

import pytest

from mechanisms.public import domain, marginals
from mechanisms.public.queries import query_matrices as queries


@pytest.mark.parametrize("module", [domain, marginals, queries], ids=lambda m: m.__name__)
def test_the_examples_of_a_module_run(module):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 1 and outcome.failed == 0
