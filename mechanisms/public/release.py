"""What crossed the wall: noisy answers, and the receipts that say what they cost."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.files import whole_file, write_whole
from mechanisms.public.noise_kinds import NOISE_KINDS, NoiseKind
from mechanisms.public.queries.query_matrices import QueryMatrix, query_arrays, query_of


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """Noisy answers to linear queries over one marginal.

    Attributes:
        clique: the attributes, in domain order.
        query: the query matrix over the flattened (C order) marginal; the identity for a whole marginal.
        values: the noisy answers, one per row of ``query``, in records.
        noise: the kind of noise.
        scale: the scale of the noise of each answer (σ of Gaussian, b of Laplace noise), in records.
        event: the ledger's name of the charge that paid for it.
    """

    clique: Clique
    query: QueryMatrix
    values: NDArray[np.float64]
    noise: NoiseKind
    scale: float
    event: str

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise of one answer, in records."""
        return NOISE_KINDS[self.noise].stddev * self.scale


@dataclass(frozen=True, eq=False)
class Measurements:
    """Everything that synthesis may know.

    Attributes:
        domain: the public domain.
        answers: the noisy answers, in the order measured.
        public_total: the number of records where it is a public fact (``replace`` with one record per unit), else None.
        histogram: noisy numbers of units with 1 … C records, where it was measured.
    """

    domain: Domain
    answers: tuple[NoisyMarginal, ...]
    public_total: int | None = None
    histogram: NoisyMarginal | None = None

    def save(self, folder: Path) -> None:
        """Write `index.json` and `answers.npz` (plain arrays, no pickle) into a folder.

        Raises:
            UserError: the disk is full or read-only.
        """
        index = {
            "format": FORMAT,
            "domain": [asdict(a) for a in self.domain.attributes],
            "public_total": self.public_total,
            "answers": [_receipt(a) for a in self.answers],
            "histogram": None if self.histogram is None else _receipt(self.histogram),
        }
        named = [(str(i), a) for i, a in enumerate(self.answers)]
        named += [] if self.histogram is None else [(HISTOGRAM, self.histogram)]
        with whole_file(folder / "answers.npz") as part, part.open("wb") as file:
            arrays: dict[str, Any] = {k: v for n, a in named for k, v in _arrays(n, a).items()}
            np.savez(file, **arrays)
        write_whole(folder / "index.json", json.dumps(index, indent=1) + "\n")


FORMAT = "noisy-measurements/1"
#: What the histogram's arrays are called by.
HISTOGRAM = "histogram"
#: What a file that was cut off or changed raises while it is read.
DAMAGED: tuple[type[Exception], ...] = (OSError, EOFError, ArithmeticError, LookupError, ValueError, TypeError)
DAMAGED += (AttributeError, zipfile.BadZipFile, zlib.error)


def load_measurements(folder: Path) -> Measurements:
    """Measurements as `Measurements.save` wrote them.

    Raises:
        UserError: no measurements there, or not readable as such.
    """
    try:
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        if index.get("format") != FORMAT:
            raise ValueError(f"format {index.get('format')!r}")
        domain = Domain(tuple(Attribute(**a) for a in index["domain"]))
        with (folder / "answers.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            answers = tuple(_answer(str(i), r, arrays) for i, r in enumerate(index["answers"]))
            counted = index.get("histogram")
            histogram = None if counted is None else _answer(HISTOGRAM, counted, arrays)
        for answer in answers:
            if answer.query.columns != domain.cells(answer.clique):
                raise ValueError(f"{answer.event} does not fit the domain")
        return Measurements(domain, answers, _public_total(index["public_total"]), histogram)
    except FileNotFoundError as error:
        fix = "from=RUN/release, the release folder of a run"
        raise UserError("no measurements in this folder", where=str(folder), fix=fix) from error
    except DAMAGED as error:
        fix = "take the release folder of a run, whole"
        raise UserError(f"not readable as measurements ({error})", where=str(folder), fix=fix) from error


def _public_total(given: object) -> int | None:
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 0):
        raise ValueError("public_total is no number of records")
    return given


def save_answer(path: Path, answer: NoisyMarginal) -> None:
    """One answer with its receipt in one file, whole or not at all."""
    with whole_file(path, mode=0o600) as part, part.open("wb") as file:
        arrays: dict[str, Any] = {"receipt": np.array(json.dumps(_receipt(answer))), **_arrays("0", answer)}
        np.savez(file, **arrays)


def load_answer(path: Path) -> NoisyMarginal:
    """One answer as `save_answer` wrote it.

    Raises:
        UserError: the file is damaged.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return _answer("0", json.loads(str(arrays["receipt"])), arrays)
    except DAMAGED as error:
        fix = "take it away: its marginal stays spent and is not measured again"
        raise UserError("this saved answer is damaged", where=str(path), fix=fix) from error


def _receipt(answer: NoisyMarginal) -> dict[str, Any]:
    return {
        "clique": list(answer.clique),
        "query": type(answer.query).__name__,
        "noise": answer.noise,
        "scale": answer.scale,
        "event": answer.event,
    }


def _arrays(prefix: str, answer: NoisyMarginal) -> dict[str, NDArray[Any]]:
    named = {f"{prefix}.{k}": v for k, v in query_arrays(answer.query).items()}
    return {f"{prefix}.values": answer.values, **named}


def _answer(prefix: str, receipt: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> NoisyMarginal:
    mine = {k.removeprefix(f"{prefix}."): arrays[k] for k in arrays if k.startswith(f"{prefix}.")}
    query, values, scale = query_of(receipt["query"], mine), mine["values"], receipt["scale"]
    clique = tuple(receipt["clique"])
    if values.dtype != np.float64 or values.shape != (query.rows,) or not np.isfinite(values).all():
        raise ValueError(f"the answers to {' × '.join(clique)} are not {query.rows} finite numbers")
    if receipt["noise"] not in NOISE_KINDS or not 0 < scale < math.inf:
        raise ValueError(f"{receipt['noise']} noise of scale {scale} for {' × '.join(clique)}")
    return NoisyMarginal(clique, query, values, receipt["noise"], scale, receipt["event"])


@dataclass(frozen=True)
class PrivacyStatement:
    """What was promised and spent: the content of `privacy.json`, JSON values only.

    Attributes:
        private: whether the folder's content is (ε, δ)-DP as stated.
        reasons_not_private: why not, in sentences.
        budget, spent: {"epsilon", "delta"}.
        accountant: its name; `conversion` its formula.
        neighbouring: add_remove or replace.
        unit: who is protected, in words; `max_records` is C; `clip` how it was enforced; `missing_unit` what
            happened to rows without a unit id; `holdout` who was set aside before anything was counted.
        events: every charge with sensitivity, scale and cost, and whether an answer exists.
        guarantee: {"epsilon", "delta"} of everything that the plan may charge: what holds, whatever was charged of it.
        original: {"mu"} or {"rho"} of the guarantee, before any δ is chosen; empty under other accountants.
        slots: over how many Gaussian events the accountant splits δ; 0 where it does not.
        epsilon_at: ε at other δ; `curve` the same as pairs (δ, ε); None where there is no bound.
        group_privacy: {"units", "epsilon", "delta"} for groups of units.
        table: the table's name; `published` who releases it and when, from the settings; None where nobody said so.
        running_total: what a budget ledger says about all releases of this table; None without one.
        public_facts: what was taken as public; `outside` what the guarantee does not cover.
        noise_source: the secure source, or the fixed seed's warning.
        versions: of this package and of the libraries that matter.
        selection: how one of several tries was chosen, and what a try cost; None where there was one. Events are those
            of the try that is released; how many there were is not told.
        warnings: what makes the promise a weak one, in sentences.
        unit_ids: which texts mean the same unit, and which none; empty where a record is a unit.
    """

    private: bool
    reasons_not_private: tuple[str, ...]
    budget: Mapping[str, float]
    spent: Mapping[str, float]
    accountant: str
    conversion: str
    neighbouring: str
    unit: str
    max_records: int
    clip: str
    missing_unit: str
    holdout: str
    noise_source: str
    public_facts: tuple[str, ...]
    outside: tuple[str, ...]
    events: tuple[Mapping[str, Any], ...]
    versions: Mapping[str, str]
    guarantee: Mapping[str, float]
    original: Mapping[str, float]
    slots: int
    epsilon_at: Mapping[str, float | None]
    curve: tuple[tuple[float, float | None], ...]
    group_privacy: tuple[Mapping[str, float | None], ...]
    table: str
    published: Mapping[str, str | None]
    running_total: Mapping[str, Any] | None = None
    selection: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    unit_ids: str = ""

    def to_json(self) -> dict[str, Any]:
        """The statement as JSON values, the most important first."""
        return {"version": STATEMENT_VERSION, **asdict(self)}


#: Of privacy.json; version 1 had no such key, and nothing bound it to the files beside it.
STATEMENT_VERSION = 2
