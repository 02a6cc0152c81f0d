"""Noisy answers as files, and the schema beside them: written whole, read without trust."""

from __future__ import annotations

import json
import math
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict, whole_file, write_whole
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.plain_files import open_arrays, read_mapping
from mechanisms.public.queries.cell_sums import QUERIES, query_of
from mechanisms.public.release import Measurements, NoisyDistances, NoisyMarginal
from mechanisms.public.schema.schema_text import alone
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema

FORMAT = "noisy-measurements/1"
#: What the histogram's arrays are called by.
HISTOGRAM = "histogram"
#: Those about persons are numbered behind this word.
PERSONS = "persons"
#: And those of the distances.
DISTANCES = "distances"
#: What a file that was cut off or changed raises while it is read.
DAMAGED: tuple[type[Exception], ...] = (OSError, EOFError, ArithmeticError, LookupError, ValueError, TypeError)
DAMAGED += (AttributeError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error, SyntaxError, tokenize.TokenError)


def save_measurements(measurements: Measurements, folder: Path) -> None:
    """Write `index.json` and `answers.npz` (plain arrays, no pickle) into a folder.

    Raises:
        UserError: the disk is full or read-only.
    """
    named, distances = named_answers(measurements), measurements.distances
    with whole_file(folder / "answers.npz") as part, part.open("wb") as file:
        arrays: dict[str, Any] = {k: v for n, a in named for k, v in _arrays(n, a).items()}
        if distances is not None:
            arrays |= {f"{DISTANCES}.values": distances.values, f"{DISTANCES}.whole": distances.whole}
        np.savez(file, **arrays)
    write_whole(folder / "index.json", json.dumps(index_of(measurements), indent=1) + "\n")


def named_answers(measurements: Measurements) -> list[tuple[str, NoisyMarginal]]:
    """Every answer with the name of its arrays."""
    named = [(str(i), a) for i, a in enumerate(measurements.answers)]
    named += [] if measurements.histogram is None else [(HISTOGRAM, measurements.histogram)]
    return named + [(f"{PERSONS}{i}", a) for i, a in enumerate(_of_persons(measurements))]


def _of_persons(measurements: Measurements) -> list[NoisyMarginal]:
    """The answers about persons but for the histogram, which has a place of its own."""
    return [a for a in measurements.persons if a is not measurements.histogram]


def index_of(measurements: Measurements) -> JsonDict:
    """The content of index.json."""
    index: JsonDict = {
        "format": FORMAT,
        "domain": [asdict(a) for a in measurements.domain.attributes],
        "public_total": measurements.public_total,
        "answers": [_receipt(a) for a in measurements.answers],
        "histogram": None if measurements.histogram is None else _receipt(measurements.histogram),
    }
    if persons := _of_persons(measurements):  # no key without any
        index[PERSONS] = [_receipt(a) for a in persons]
    distances = measurements.distances
    if distances is not None:  # no key without any, as of releases that knew none
        named_by = {k: getattr(distances, k) for k in ("noise", "scale", "event", "answers")}
        level = {"below": distances.below} if distances.below else {}
        index[DISTANCES] = {"cliques": [list(c) for c in distances.cliques], **named_by, **level}
    return index


def load_released_schema(path: Path) -> Schema:
    """The schema in a file that lies in a release; no other file is opened.

    Raises:
        UserError: it cannot be read, or names another file.
    """
    with alone():
        return load_schema(path)


def check_readable(schema: Schema) -> None:
    """Ends a run, before anything is charged, whose release would have a schema that does not give back this one.

    Raises:
        AssertionError: a fault of this program, no user's mistake.
    """
    with alone():
        again = parse_schema(schema.to_fields(), where="the released schema")
    same = again.measured == schema.measured and again.to_fields() == schema.to_fields()
    assert same, "the released schema would not hold what is measured"


def load_measurements(folder: Path, *, without: Collection[str] = ()) -> Measurements:
    """Measurements as `save_measurements` wrote them.

    Args:
        without: names of query matrices whose answers are left out.
    Raises:
        UserError: no measurements there, or not readable as such.
    """
    try:
        index = read_mapping(folder / "index.json")
        if index.get("format") != FORMAT:
            raise ValueError(f"format {index.get('format')!r}")
        domain = Domain(tuple(Attribute(**a) for a in index["domain"]))
        with open_arrays(folder / "answers.npz") as arrays:
            receipts = [(i, r) for i, r in enumerate(index["answers"]) if r["query"] not in without]
            answers = tuple(_answer(str(i), r, arrays) for i, r in receipts)
            counted = [(HISTOGRAM, r) for r in [index.get("histogram")] if r is not None]
            counted += [(f"{PERSONS}{i}", r) for i, r in enumerate(index.get(PERSONS, ()))]
            persons = tuple(_answer(name, receipt, arrays) for name, receipt in counted)
            distances = None if DISTANCES not in index else _distances(index[DISTANCES], arrays)
        for answer in answers:
            if answer.query.columns != domain.cells(answer.clique):
                raise ValueError(f"{answer.event} does not fit the domain")
        if distances is not None:
            _check_distances(distances, domain, len(index["answers"]))
        return Measurements(domain, answers, _public_total(index["public_total"]), distances, persons)
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


def _receipt(answer: NoisyMarginal) -> JsonDict:
    return {
        "clique": list(answer.clique),
        "query": type(answer.query).__name__,
        "noise": answer.noise,
        "scale": answer.scale,
        "event": answer.event,
    }


def _arrays(prefix: str, answer: NoisyMarginal) -> dict[str, NDArray[Any]]:
    named = {f"{prefix}.{k}": v for k, v in answer.query.arrays().items()}
    return {f"{prefix}.values": answer.values, **named}


def _answer(prefix: str, receipt: Json, arrays: Mapping[str, NDArray[Any]]) -> NoisyMarginal:
    mine = {k.removeprefix(f"{prefix}."): arrays[k] for k in arrays if k.startswith(f"{prefix}.")}
    _check_registered("query", receipt["query"], QUERIES)
    _check_registered("noise", receipt["noise"], NOISE_KINDS)
    query, values, scale = query_of(receipt["query"], mine), mine["values"], receipt["scale"]
    clique = tuple(receipt["clique"])
    if values.dtype != np.float64 or values.shape != (query.rows,) or not np.isfinite(values).all():
        raise ValueError(f"the answers to {' × '.join(clique)} are not {query.rows} finite numbers")
    if not 0 < scale < math.inf:
        raise ValueError(f"{receipt['noise']} noise of scale {scale} for {' × '.join(clique)}")
    return NoisyMarginal(clique, query, values, receipt["noise"], scale, receipt["event"])


def _distances(receipt: Json, arrays: Mapping[str, NDArray[Any]]) -> NoisyDistances:
    _check_registered("noise", receipt["noise"], NOISE_KINDS)
    cliques = tuple(tuple(c) for c in receipt["cliques"])
    values, whole = arrays[f"{DISTANCES}.values"], arrays[f"{DISTANCES}.whole"]
    shape = (len(cliques),)
    if values.dtype != np.float64 or values.shape != shape or not np.isfinite(values).all():
        raise ValueError(f"the distances are not {len(cliques)} finite numbers")
    if whole.dtype != np.bool_ or whole.shape != shape:
        raise ValueError("the distances do not say what they compare")
    answers, scale = receipt["answers"], receipt["scale"]
    if isinstance(answers, bool) or not isinstance(answers, int) or answers < 0 or not 0 < scale < math.inf:
        raise ValueError(f"distances of scale {scale} from a model of {answers} answers")
    below = float(receipt.get("below", 0.0))
    if not 0 <= below < math.inf:
        raise ValueError(f"distances beyond {below} records")
    return NoisyDistances(cliques, whole, values, answers, receipt["noise"], scale, receipt["event"], below)


def _check_distances(distances: NoisyDistances, domain: Domain, answers: int) -> None:
    """Each marginal once, in the order of the domain; and the answers are there."""
    places = [domain.axes(c) for c in distances.cliques]
    ordered = all(list(p) == sorted(set(p)) and len(p) > 1 for p in places)
    if not ordered or places != sorted(set(places)) or distances.answers > answers:
        raise ValueError("the distances are not those of different marginals, in the domain's order")


def _check_registered(kind: str, name: Any, registry: Mapping[str, object]) -> None:
    """What a file names is ours or was loaded before: a file never has anything imported."""
    if not isinstance(name, str):
        raise TypeError(f"the {kind} has no name")
    if name not in registry:
        fix = "plugins=[MODULE] with the module that offers it, if you trust it; else the files were changed"
        raise UserError(f"no {kind} is called {name!r} here", where="measurements", fix=fix)
