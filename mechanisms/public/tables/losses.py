"""What a table would lose under a schema: values that it neither lists nor can read. NOT private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mechanisms.public.errors import UserError
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import EncodingReport
from mechanisms.public.tables.listed_gaps import usual

SETTING = "data.max_unplaced"
#: A list is another column's where so many cells are filled, and none of them holds a text of it: *other* takes all.
NONE_LISTED = 20
#: So many columns are named in a refusal.
NAMED = 8


@dataclass(frozen=True)
class ColumnLoss:
    """Values of one column that are not declared missing, and neither listed nor readable as numbers within the bounds.

    Attributes:
        lost: how many; what a declared *other*, or `outside: missing`, takes is none of them, unless *other* takes the
            whole column, nor what is only rounded.
        filled: cells of the column that are not declared missing.
        fate: what becomes of them, as a verb: "become missing".
        clipped: how many of them lie beyond the bounds.
    """

    column: str
    lost: int
    filled: int
    fate: str
    clipped: int = 0

    @property
    def unread(self) -> int:
        """Those that are not listed, or cannot be read."""
        return self.lost - self.clipped

    @property
    def share(self) -> float:
        return self.lost / self.filled if self.filled else 0.0

    def __str__(self) -> str:
        return f"column {self.column!r} loses {percent(self.share)} of its values ({self.lost:,} of {self.filled:,})"


def percent(share: float) -> str:
    """`30.0 %`; a share above 0 never reads as 0, nor one below 1 as all."""
    if 0 < share < 0.001:
        return "below 0.1 %"
    return f"{min(100 * share, 99.9) if share < 1 else 100:.1f} %"


def loss_of(column: Column, report: EncodingReport) -> ColumnLoss:
    """What a column loses."""
    outside, unread = report.outside[column.name], report.unplaced[column.name]
    clipped, filled = 0, report.rows - report.gaps[column.name]
    if column.gridded:
        # What cannot be read goes to *missing*; to *other* where the column has only that.
        unread = 0 if column.missing_code is None and column.other is not None else unread
        clipped = outside - report.rounded[column.name] if column.outside == "clip" else 0
    elif column.outside != "other" or (_listed_by_hand(column) and NONE_LISTED <= outside == filled):
        unread += outside
    fates = [fate(column)] if unread or not clipped else []
    fates += ["count as the nearest bound"] if clipped else []
    return ColumnLoss(column.name, unread + clipped, filled, ", or ".join(fates), clipped)


def _listed_by_hand(column: Column) -> bool:
    """Whether a person named the values: a list that a run discovers is empty until then, and may stay so."""
    return (column.discover is None or not column.discover.values) and "values" not in column.discovered


def fate(column: Column) -> str:
    """What becomes of a value that the column cannot read, or does not list."""
    if column.missing_code is not None and (column.gridded or column.outside == "missing"):
        return "become missing"
    if column.other is not None:
        return f"become {column.other!r}"
    return f"count as the first value, {column.labels[0]!r}"


def losses_of(report: EncodingReport, schema: Schema) -> tuple[ColumnLoss, ...]:
    """The columns that lose values, the worst first."""
    losses = [loss for column in schema.with_lengths if (loss := loss_of(column, report)).lost]
    return tuple(sorted(losses, key=lambda loss: -loss.lost))


def beyond(losses: Sequence[ColumnLoss], at_most: float) -> tuple[ColumnLoss, ...]:
    """The columns that lose a larger share than that."""
    return tuple(loss for loss in losses if loss.lost > at_most * loss.filled)


def refuse_losses(losses: Sequence[ColumnLoss], at_most: float, *, figures: bool = True) -> None:
    """Stop before anything is charged where a column loses more than `at_most` of its values, gaps aside.

    It depends on the rows: it lies outside of the guarantee, and the statement names it. The message quotes no value.

    Args:
        figures: whether the message may say how much is lost: not where it goes into a log.

    Raises:
        UserError: names the columns, and what they lose; for the operator's eyes.
    """
    if too_many := beyond(losses, at_most):
        more = f"; and {len(too_many) - NAMED} more columns" if len(too_many) > NAMED else ""
        if figures:
            problem = "; ".join(f"{loss}, which would {loss.fate}" for loss in too_many[:NAMED])
        else:
            problem = "more of its values are lost of " + ", ".join(f"column {x.column!r}" for x in too_many[:NAMED])
        fix = "python -m pipeline check data.path=… data.schema=… shows why, and a likely cure; "
        fix += f"{SETTING}=1 goes on all the same; nothing was spent"
        raise UserError(f"{problem}{more} (NOT private)", where=f"{SETTING}={at_most:g}", fix=fix)


def loss_lines(losses: Sequence[ColumnLoss]) -> list[str]:
    """A line per column for the operator: NOT private."""
    return [f"{loss}; they {loss.fate}" for loss in losses]


def declared_texts(column: Column) -> list[str]:
    """The texts of a declaration, which a release shows with the schema: values, spellings, gaps, *other*, a constant.

    Those that were discovered are not among them, nor, values of a list aside, the usual ones.
    """
    spelled = [t for t, _ in column.spelled] if _listed_by_hand(column) else []
    values = {*column.values} if column.kind == "categorical" else ()
    own = dict.fromkeys((*spelled, *column.missing_texts, column.other or ""))
    return [t for t in own if t in values or not (len(bare := t.strip()) < 2 or usual(bare))]


def lone_lines(lone: Mapping[str, int], unit: str | None) -> list[str]:
    """A line for the operator about listed texts that one unit alone holds; none where there are none: NOT private.

    Args:
        lone: as of `EncodingReport`.
        unit: the column that names units; None: each row is one.
    """
    held = [f"{n:,} of {name!r}" for name, n in lone.items() if n]
    more = f" and of {len(held) - NAMED} more columns" if len(held) > NAMED else ""
    why = "each betrays a person, unless its list stems from a public source"
    return [f"listed texts that {one_unit(unit)} alone holds: {', '.join(held[:NAMED])}{more}: {why}"] if held else []


def one_unit(unit: str | None) -> str:
    """One unit, in words."""
    return "one row" if unit is None else f"one unit ({unit!r})"
