"""Query matrices as they stand in files: the registry of class names, which releases and ledgers keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.errors import UserError
from mechanisms.public.queries.adaptive_grid import GridQuery
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import PROVED, Identity, QueryMatrix, SparseQuery
from mechanisms.public.queries.residual_query import ResidualQuery

#: Class name → the query of its arrays: ours, and those of plugins; a new kind of query is one line here.
QUERIES: dict[str, Callable[[Mapping[str, NDArray[np.int64]]], QueryMatrix]] = {
    "Identity": Identity.from_arrays,
    "SparseQuery": SparseQuery.from_arrays,
    "GridQuery": GridQuery.from_arrays,
    "MergedQuery": MergedQuery.from_arrays,
    "ResidualQuery": ResidualQuery.from_arrays,
}


def query_of(name: str, arrays: Mapping[str, NDArray[np.int64]]) -> QueryMatrix:
    """The query matrix of that class name from its arrays; ValueError for an unknown name or arrays that are none."""
    whole = {key: a for key, a in arrays.items() if key != "values"}
    if any(a.dtype.kind not in "iu" or a.dtype == np.uint64 or a.ndim != 1 for a in whole.values()):
        raise ValueError("a query matrix is saved as rows of whole numbers")
    if name not in QUERIES:
        raise ValueError(f"no query matrix is called {name!r}; known are {', '.join(QUERIES)}")
    return QUERIES[name]({key: a.astype(np.int64) for key, a in whole.items()})  # narrow ones would run over


def check_stored(query: QueryMatrix) -> None:
    """Refuse a query whose class a file would name as another one, or as none; ask before the charge.

    Raises:
        UserError: its class is not what stands in QUERIES under the name of the class.
    """
    cls = type(query)
    if cls in PROVED:
        return
    name = cls.__name__
    if name not in QUERIES or type(query_of(name, query.arrays())) is not cls:
        other = "another class of that name" if name in QUERIES else "nothing: it is not registered"
        problem = f"a query matrix of {cls.__module__} is called {name!r}, and a file would be read as {other}"
        fix = f"QUERIES = {{{name!r}: {name}.from_arrays}} in its module, under a name that is free"
        raise UserError(problem, where="plugins", fix=fix)
