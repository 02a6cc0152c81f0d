"""Which pairs are asked for their residual alone: where that has less noise than all of their cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.queries.query_matrices import MATRIX_BITS, Identity, QueryMatrix
from mechanisms.public.queries.residual_query import ResidualQuery

#: Cells: smaller pairs are measured whole, since combined pairs also describe three columns and more.
SMALL_CELLS = 9


def with_residuals(
    domain: Domain, queries: Mapping[Clique, QueryMatrix], bound: Callable[[QueryMatrix], float]
) -> tuple[dict[Clique, QueryMatrix], dict[Clique, float]]:
    """What is asked of each pair, and its noise over that of all its cells for the same part of a budget.

    Of pairs that would be asked whole the residual is asked, where its noise is less: what one-way marginals tell is
    not paid for in each of their pairs again. Pairs over coarser values stay as they are.

    Args:
        bound: the sensitivity of the answers to a matrix, in the norm of the noise. Under L1 a residual never has less
            noise; under `replace` it has more than under `add_remove`.
    Returns:
        queries by pair, and factors by pair, 1 where nothing changes.
    """
    asked, factor = dict(queries), dict.fromkeys(queries, 1.0)
    for pair, query in queries.items():
        shape = domain.shape(pair)
        if not isinstance(query, Identity) or min(shape) < 2 or not SMALL_CELLS < query.cells <= 1 << MATRIX_BITS:
            continue
        residual = ResidualQuery(shape)
        less = bound(residual) / residual.unit / bound(query)
        if less < 1:
            asked[pair], factor[pair] = residual, less
    return asked, factor
