"""The synthesizer `auto`: a graphical model of what fits, then single codes where answers show more than noise.

Rows are drawn at random, and come closer to the model by marginals that nobody measured, as it has them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from mechanisms.public.settings import setting
from synthesis.consistency.agree import Target, estimate_total
from synthesis.consistency.association import associated
from synthesis.consistency.evidence import Evidence, gathered, lifted
from synthesis.consistency.projection import norm_sub, product, raked, soften, soften_alike
from synthesis.consistency.residual_parts import completed
from synthesis.consistency.shrinkage import with_likely_columns
from synthesis.contract import RowModel, Synthesizer, row_bytes
from synthesis.convergence import FitRecord, Synthesized
from synthesis.gum.gradual_update import descend
from synthesis.gum.gum_settings import GumSpec
from synthesis.gum.layout import outermost
from synthesis.impossible import Impossible, Zeros
from synthesis.independent import IndependentSpec
from synthesis.pgm.graphical_model import ModelSettings
from synthesis.pgm.grouped_model import AlikeCodes, GroupedModel, fit_grouped
from synthesis.pgm.junction_tree import fit_cliques, model_cells
from synthesis.pgm.pgm_settings import usefulness

#: A target differs from the model where its cells do by this share of the total.
DIFFERS = 1e-6
#: The model may be so many times `max_cells` large where the forest of its pairs, or of rules, is; others then get so
#: many times the forest's cells.
FOREST, BESIDE_FOREST = 16, 1.5
#: The tree that is built may be so many times larger than the one that was predicted.
TOLERANCE = 4


@dataclass(frozen=True, eq=False)
class MendedRows:
    """Rows of a graphical model, single codes of which change where answers show more than it, or a draw is off it.

    Attributes:
        model: the graphical model.
        targets: what the rows shall follow; empty where its rows follow the model in all of that.
        differ: whether they differ from the model, and not only its rows from them.
        sweeps: in which single codes change.
        zeros: combinations that no row may have.
    """

    model: GroupedModel
    targets: tuple[Target, ...]
    differ: bool
    sweeps: int
    zeros: tuple[Impossible, ...]

    @property
    def fit(self) -> FitRecord:
        return self.model.fit

    @property
    def total(self) -> float:
        return self.model.total

    def rows(self, count: int, rng: np.random.Generator, progress: Progress | None = None) -> CodedTable:
        """So many rows."""
        table = self.model.rows(count, rng, progress)
        if self.targets and count:
            targets = list(self.targets)
            table, _ = descend(table, targets, sweeps=self.sweeps, rng=rng, zeros=self.zeros, progress=progress)
        return table

    def given(self, weights: Mapping[str, Floats]) -> GroupedModel | None:
        """The conditioned model; None where rows of it are mended."""
        return None if self.differ else self.model.given(weights)


@dataclass(frozen=True)
class AutoSpec(Synthesizer):
    """Settings.

    Attributes:
        max_cells: the most cells of the graphical model's junction tree, or half as many again as the forest of the
            pairs that show most dependence, or rules, need, where this is more, up to 16 times `max_cells`;
            marginals for which it has no room are met by changing single codes of its rows.
        iterations: steps of the model's estimation, at most.
        descents: sweeps in which single codes change, at most.
    """

    chunked: ClassVar[bool] = True
    max_cells: int = setting(250_000, least=1)
    iterations: int = setting(400, least=1)
    descents: int = setting(24, least=0)

    def make(
        self,
        measurements: Measurements,
        *,
        rows: int,
        rng: np.random.Generator,
        zeros: Zeros = (),
        progress: Progress | None = None,
    ) -> Synthesized:
        """The rows of a model, adjusted to the other answers; independent columns without pairs and rules.

        Columns are what their answers make likeliest (`with_likely_columns`).

        The model holds the marginals that show the most dependence: a forest of pairs first, which joins all columns
        that depend on each other, then as many as `max_cells` has room for. Where answers
        differ from it by more than their noise (`soften`: the threshold of least estimated risk), rows follow them; and
        the model in pairs and triples that nobody measured (`unmeasured`), which a draw meets by chance alone.
        """
        measurements = with_likely_columns(measurements)
        if rows == 0 or _columns_alone(measurements, zeros):
            return IndependentSpec().make(measurements, rows=rows, rng=rng, zeros=zeros, progress=progress)
        model = self._mended(measurements, zeros, progress)
        if model is None:
            start = GumSpec(iterations=1, alpha=0.01, descents=max(self.descents, 1))
            return start.make(measurements, rows=rows, rng=rng, zeros=zeros, progress=progress)
        return Synthesized(model.rows(rows, rng), fit=model.fit)

    def model(
        self, measurements: Measurements, *, zeros: Zeros = (), progress: Progress | None = None
    ) -> RowModel | None:
        """What `make` draws from: independent columns, or the graphical model and what mends its rows."""
        measurements = with_likely_columns(measurements)
        if _columns_alone(measurements, zeros):
            return IndependentSpec().model(measurements, zeros=zeros, progress=progress)
        return self._mended(measurements, zeros, progress)

    def _mended(self, measurements: Measurements, zeros: Zeros, progress: Progress | None) -> MendedRows | None:
        """The model and the targets of its rows; None where the columns, or the zeros, are more than it may have."""
        evidence = gathered(measurements.domain, completed(measurements).answers)
        alike = AlikeCodes.of(measurements, apart={name for clique, _ in zeros for name in clique})
        coarse = alike.merged(measurements)
        try:
            inside, limit = self._inside(coarse, zeros)
        except UserError:
            return None
        held = replace(coarse, answers=tuple(a for a in coarse.answers if a.clique in inside))
        settings = ModelSettings(iterations=self.iterations, max_cells=TOLERANCE * limit)
        model = fit_grouped(held, alike, settings, impossible=tuple(zeros), progress=progress)
        pairs = [_target(model, each) for each in evidence]
        targets, differ = tuple(t for t, _ in pairs), any(differs for _, differs in pairs)
        more = unmeasured(model, targets)
        return MendedRows(model, (*targets, *more) if differ or more else (), differ, self.descents, tuple(zeros))

    def _inside(self, measurements: Measurements, zeros: Zeros) -> tuple[frozenset[Clique], int]:
        """The cliques that the model holds, by their `usefulness`, and its limit in cells."""
        evidence = gathered(measurements.domain, completed(measurements).answers)
        domain, cliques, fixed = measurements.domain, [e.clique for e in evidence], [c for c, _ in zeros]
        useful, forest = usefulness(measurements, evidence)
        alone = sum(domain.shape(domain.names)) + sum(domain.cells(cliques[i]) for i in forest)
        limit = self._limit(max(alone, model_cells(domain, fixed)))
        return frozenset(fit_cliques(domain, cliques, useful, limit, fixed=fixed)[0]), limit

    def _limit(self, forest: int) -> int:
        """The most cells of a model whose columns, and forest or rules, have so many."""
        return max(self.max_cells, min(int(BESIDE_FOREST * forest), FOREST * self.max_cells))

    def warnings(self, domain: Domain, fixed: Sequence[Clique]) -> tuple[str, ...]:
        """Of rules for which no model has room."""
        least, most = model_cells(domain, fixed), FOREST * self.max_cells
        if least <= most:
            return ()
        problem = (
            f"the schema's rules alone make a graphical model of {least:,} cells, more than {most:,}: there is none"
        )
        return (
            f"{problem}, and rows keep less of what is measured; raise synthesis.max_cells to {-(-least // FOREST):,}",
        )

    def predicted_bytes(
        self, domain: Domain, cliques: Sequence[Clique], rows: int, *, fixed: Sequence[Clique] = (), grown: int = 0
    ) -> int:
        """The rows, fourteen arrays per cell of the largest model, and seven per cell measured; four of those followed.

        The largest forest joins all columns to that of the most values.
        """
        measured, sizes = sum(domain.cells(c) for c in cliques), domain.shape(domain.names)
        model = self._limit(max(sum(sizes) + max(sizes) * (sum(sizes) - max(sizes)), model_cells(domain, fixed)))
        return row_bytes(domain, rows) + 14 * 8 * model + 7 * 8 * measured + 4 * 8 * min(ALL_CELLS, 1000 * rows)


def _columns_alone(measurements: Measurements, zeros: Zeros) -> bool:
    """Whether the rows are independent columns: mended by rules, such columns would lose their own answers."""
    alone = not zeros and all(len(a.clique) < 2 for a in measurements.answers)
    return alone or estimate_total(measurements) <= 0


def _target(model: GroupedModel, evidence: Evidence) -> tuple[Target, bool]:
    """The model's marginal, changed where the answers show more than noise; and whether it was."""
    if model.answerable(evidence.clique):
        base = model.marginal(evidence.clique).reshape(evidence.shape)
    else:
        base = product([model.marginal((n,)) for n in evidence.clique], model.total)
    start = _start(model.domain, evidence, base)
    expected = evidence.answer(start)
    if evidence.disjoint:
        answers = norm_sub(soften_alike(evidence.standardized, expected), float(expected.sum()))
    else:
        answers = soften(evidence.standardized, expected, 1.0)
    values = answers.reshape(evidence.shape) * evidence.stddev if evidence.whole else lifted(evidence, answers, start)
    values = np.maximum(values, 0.0)
    if not values.sum() > 0:  # the noise of a few records has left no cell above 0: this answer tells nothing
        return Target(evidence.clique, base, evidence.stddev, None if evidence.whole else evidence.rows), False
    values *= model.total / float(values.sum())
    differs = float(np.abs(values - base).sum()) > DIFFERS * model.total
    return Target(evidence.clique, values, evidence.stddev, None if evidence.whole else evidence.rows), differs


def _start(domain: Domain, evidence: Evidence, base: Floats) -> Floats:
    """From where answers draw a marginal: the model's, or that of one correlation where it explains the answers better.

    Both are judged by their squared gaps and twice the numbers that were fitted (Mallows 1973): one, and of the model
    as many as its gaps are fewer than noise makes. Where the model stays, records go together within cells that were
    asked as one by that correlation, unless the model is further from even there: other answers tell it what lies
    within, as of a column and its near copy.
    """
    associated_cells = associated(evidence, base, tuple(domain[n].ordered for n in evidence.clique))
    if associated_cells is None:
        return base
    off = [float(((evidence.standardized - evidence.answer(cells)) ** 2).sum()) for cells in (base, associated_cells)]
    if off[1] + 2 < off[0] + 2 * max(evidence.rows - off[0], 0.0):
        return associated_cells
    even = np.multiply.outer(base.sum(axis=1), base.sum(axis=0))
    within = [float(np.abs(c - lifted(evidence, evidence.answer(c), even)).sum()) for c in (base, associated_cells)]
    return base if within[0] >= within[1] else lifted(evidence, evidence.answer(base), associated_cells)


#: For pairs and triples: the most of them, their most cells per record (in emptier ones no row can be placed better),
#: and their noise, as a share of that of the least precise answer.
KINDS = {2: (300, 4.0, 0.5), 3: (150, 1.0, 0.5)}
#: The most cells of one, and of all; of more pairs, or triples, than these none is looked at.
MOST_CELLS, ALL_CELLS, MOST_LISTED = 250_000, 2_000_000, 200_000
#: A marginal of the model is fitted to the targets inside of it in so many rounds.
ROUNDS = 3


def unmeasured(model: GroupedModel, targets: Sequence[Target]) -> tuple[Target, ...]:
    """Pairs and triples that lie in no target, as the model has them, fitted to the targets inside of them.

    Rows of a model are whole numbers of its nodes' cells; across nodes they meet at random, and a pair or a triple that
    no node holds has the noise of a random draw of so many rows. Those with the most cells come first, as far as there
    are records for these.

    Guarantee: post-processing; costs no privacy.
    """
    fitted: list[Target] = []
    noise, left = max((t.stddev for t in targets), default=1.0), ALL_CELLS
    for size, (most, full, share) in KINDS.items():
        for clique in _largest(model.domain, targets, size, min(full * model.total, MOST_CELLS))[:most]:
            if (cells := model.domain.cells(clique)) <= left and model.answerable(clique, MOST_CELLS):
                drawn = math.sqrt(model.total / cells)
                values = _fitted(model, (*targets, *fitted), clique)
                if not float(values.sum()) > 0:  # targets inside of it contradict each other
                    continue
                fitted.append(Target(clique, values, max(share * noise, drawn)))
                left -= cells
    return tuple(fitted)


def _largest(domain: Domain, targets: Sequence[Target], size: int, most: float) -> list[Clique]:
    """Cliques of so many attributes that lie in no target and have at most so many cells, those of the most first."""
    if math.comb(len(domain.names), size) > MOST_LISTED:
        return []
    inside = {c for t in targets for c in itertools.combinations(t.clique, size)}
    sizes = dict(zip(domain.names, domain.shape(domain.names), strict=True))
    cells = {c: math.prod(sizes[n] for n in c) for c in itertools.combinations(domain.names, size) if c not in inside}
    return sorted((c for c, n in cells.items() if n <= most), key=lambda c: -cells[c])


def _fitted(model: GroupedModel, targets: Sequence[Target], clique: Clique) -> Floats:
    """The model's marginal, multiplied until it has the targets inside of it, nearly."""
    values = model.marginal(clique).reshape(model.domain.shape(clique))
    largest = outermost([t for t in targets if set(t.clique) < set(clique)])
    for _ in range(ROUNDS if len(largest) > 1 else 1):
        for target in largest:
            values, _ = raked(values, tuple(clique.index(n) for n in target.clique), target.values)
    return values * (model.total / max(float(values.sum()), 1e-300))
