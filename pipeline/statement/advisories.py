"""Known wrong claims of earlier versions, and whether a release is affected, where its receipts can tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import yaml

from mechanisms.public.files import Json
from pipeline.statement.statement import NO_HOLDOUT

#: Laplace scales, in records, beyond which the lattice was too fine: of an adaptive grid, and of whole marginals.
FINE_GRID, FINE_WHOLE = 4096.0, 1.9e8


#: A wrong claim that was taken back: `id`, `title` and `says` (what was wrong), `below` (the first version that is not
#: affected) and `holds` (the name of the check).
Advisory = Mapping[str, str]


@lru_cache(maxsize=1)
def all_advisories() -> tuple[Advisory, ...]:
    """All of them, the oldest first."""
    content = yaml.safe_load((Path(__file__).parent / "advisories.yaml").read_text(encoding="utf-8"))
    return tuple({k: str(v).strip() for k, v in entry.items()} for entry in content)


def advisories_of(statement: Json, answers: Sequence[Json]) -> list[tuple[Advisory, bool | None, str]]:
    """What is known about the version that measured a release: whether it concerns this one (None: unknown), and why.

    Args:
        statement: the content of privacy.json; of an older one `as_fields`.
        answers: the entries of measurements/index.json: noise, scale and query of each answer.
    """
    version = str(statement.get("versions", {}).get("pipeline", ""))
    concerned = [a for a in all_advisories() if not version or _numbers(version) < _numbers(a["below"])]
    return [(a, *CHECKS[a["holds"]](statement, answers)) for a in concerned]


def fine_laplace(statement: Json, answers: Sequence[Json]) -> tuple[bool | None, str]:
    """Laplace noise beyond the scale at which the lattice of its query becomes too fine."""
    limits = [(a, FINE_WHOLE if a["query"] == "Identity" else FINE_GRID) for a in answers if a["noise"] == "laplace"]
    over = [a for a, limit in limits if a["scale"] > limit]
    if over:
        largest = max(a["scale"] for a in over)
        return True, f"{len(over)} of its answers have such noise, up to scale {largest:,.0f} records"
    return False, "none of its answers has such noise"


def set_aside_by_position(statement: Json, answers: Sequence[Json]) -> tuple[bool | None, str]:
    """A release of such an experiment looks like any other; where the number of records is public, nothing was lost."""
    if statement.get("neighbouring") == "replace" and statement["unit"]["column"] is None:
        return False, "the number of records is public, so that positions are too"
    if statement["holdout"] == NO_HOLDOUT:
        return None, "affected if it was made by such an experiment; the release does not say"
    return False, "its units were set aside by their own coins"


def ids_as_none(statement: Json, answers: Sequence[Json]) -> tuple[bool | None, str]:
    """The release does not say of which type its ids were; of an older format, nor what records without one are."""
    unit = statement["unit"]
    if unit["column"] is None or unit["missing"] not in (None, "own"):
        return False, "records without an id are no units of their own here"
    own = "" if unit["missing"] else "privacy.missing_unit was own, and "
    ids = "its ids are times, decimals or bytes of a Parquet table or a data frame"
    return None, f"affected if {own}{ids}; it does not say"


def nan_by_others(statement: Json, answers: Sequence[Json]) -> tuple[bool | None, str]:
    """The release does not say of which format its table was, nor how its gaps were written."""
    return None, "affected if its table was one file of Parquet, or a data frame, with NaN in it; it does not say"


def rounded_ids(statement: Json, answers: Sequence[Json]) -> tuple[bool | None, str]:
    """The release does not say of which type its ids were; under replace two units are as far apart as one."""
    if statement["unit"]["column"] is None or statement.get("neighbouring") == "replace":
        return False, "no id is read, or another unit stands in the place of one"
    return (
        None,
        "affected if its ids are decimals of more than 38 digits of a Parquet table or an Arrow frame; it does not say",
    )


def carriage_returns(statement: Json, answers: Sequence[Json]) -> tuple[bool | None, str]:
    """The release does not say how many columns its file had."""
    return None, "affected if its table was a CSV file of one column with such a cell; it does not say"


CHECKS: dict[str, Callable[[Json, Sequence[Json]], tuple[bool | None, str]]] = {
    "fine_laplace": fine_laplace,
    "set_aside_by_position": set_aside_by_position,
    "ids_as_none": ids_as_none,
    "nan_by_others": nan_by_others,
    "rounded_ids": rounded_ids,
    "carriage_returns": carriage_returns,
}


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with: 0.2.0rc1 → (0, 2, 0)."""
    leading = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()
