"""GUM from the rows of a public table: what no answer tells stays as it is there (Li et al. 2021b, section 7)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.coded_table import CodedTable, code_dtype
from synthesis.consistency.agree import ConsistentTargets
from synthesis.consistency.merged_values import Groups, merged_domain
from synthesis.gum.gum_settings import GumSpec
from synthesis.gum.layout import Layout


@dataclass(frozen=True, eq=False)
class StartedGum(GumSpec):
    """GUM whose first rows are those of a public table; all columns are changed together until the answers hold.

    Guarantee: post-processing, where the rows are public: nothing protects them, and they stand in what is made.
    Attributes:
        public_rows: the public rows, over the domain of what is synthesized.
    """

    public_rows: CodedTable | None = None

    def over(self, groups: Groups) -> StartedGum:
        """With the public rows over merged values."""
        assert self.public_rows is not None
        domain = merged_domain(self.public_rows.domain, groups)
        columns = [
            groups[a.name][codes].astype(code_dtype(a.size)) if a.name in groups else codes
            for a, codes in zip(domain.attributes, self.public_rows.columns, strict=True)
        ]
        return replace(self, public_rows=CodedTable(domain, tuple(columns)))

    def first(self, targets: ConsistentTargets, *, rows: int, rng: np.random.Generator) -> CodedTable:
        """The public rows, each as often as any other, up to one; in no order."""
        assert self.public_rows is not None
        held = self.public_rows.rows
        places = np.concatenate([np.tile(np.arange(held), rows // held), rng.permutation(held)[: rows % held]])
        places = rng.permutation(places)
        return CodedTable(targets.domain, tuple(np.asarray(c)[places] for c in self.public_rows.columns))

    def layout(self, targets: ConsistentTargets) -> Layout:
        """One part with all columns and all marginals: nothing is drawn anew."""
        return Layout(((targets.domain.names, tuple(targets.marginals)),), ())
