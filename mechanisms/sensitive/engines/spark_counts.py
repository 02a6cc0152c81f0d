"""Counts of marginals on Spark: each partition counts its rows, blocks of counts meet in one shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Clique, Domain
from mechanisms.sensitive.engines.spark_session import spark_errors
from mechanisms.sensitive.engines.spark_tasks import (
    BLOCK,
    BLOCK_FIELDS,
    WEIGHT,
    CountCodes,
    add_blocks,
    code_name,
    sum_blocks,
)


def counted(rows: Any, domain: Domain, cliques: Sequence[Clique], *, weighted: bool) -> list[NDArray[np.int64]]:
    """The counts of each clique, as of `count_cliques`: each partition counts its rows, and its blocks are summed.

    Only the columns that the marginals need are read; what travels are counts, never rows.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    names = {name for clique in cliques for name in clique}
    places = [i for i, a in enumerate(domain.attributes) if a.name in names]
    task = CountCodes(Domain(tuple(domain.attributes[i] for i in places)), tuple(cliques), weighted)
    cells = [domain.cells(c) for c in cliques]
    blocks: dict[int, NDArray[np.int64]] = {}
    fields = from_arrow_schema(BLOCK_FIELDS)
    with spark_errors():
        read = rows.select(*[code_name(i) for i in places], *([WEIGHT] if weighted else []))
        parts = read.mapInArrow(task, fields).repartition("block").mapInArrow(sum_blocks, fields)
        for batch in parts.toArrow().to_batches():
            add_blocks(batch, blocks)
    flat = np.zeros(-(-sum(cells) // BLOCK) * BLOCK, np.int64)
    for number, counts in blocks.items():
        flat[number * BLOCK : (number + 1) * BLOCK] = counts
    return [part.copy() for part in np.split(flat[: sum(cells)], np.cumsum(cells)[:-1])]
