"""The papers of a release: statement, registry record, metadata, and the manifest that binds all files.

A board reads and signs statement.html, one page without script and with nothing from elsewhere; catalogues read
croissant.json (Croissant 1.0, RAI 1.0), and a registry of deployments deployment.yaml.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import yaml
from jinja2 import TemplateError

from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict, write_whole
from mechanisms.public.persons.person_questions import PERSONS
from mechanisms.public.release import STATEMENT_VERSION, not_ours_lines
from mechanisms.public.rules.transforms import FINE
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.formats import CSV, format_of_name, persons_of
from mechanisms.public.units import UNITS, rounded_down, rounded_up
from pipeline.report.page import few_digits, rendered
from pipeline.report.scale import Scale
from pipeline.statement.signing import Manifest, Signer, file_digests, write_signature
from pipeline.statement.words import all_words, condition_in_words, is_older, only_rows_with, text_of
from pipeline.version import __version__

#: Files whose digests stand on the page.
NAMED = ("measurements/answers.npz", "privacy.json")
#: What a statement that no run wrote may end in.
BROKEN = (
    *(ValueError, TypeError, AttributeError, LookupError, ArithmeticError, OSError, TemplateError),
    *(RecursionError, MemoryError, yaml.YAMLError),
)


def write_papers(
    folder: Path,
    statement: Json,
    schema: Schema,
    *,
    table: str,
    rows_asked: int | None,
    signer: Signer | None,
    given: Json | None = None,
) -> None:
    """Write statement.html, deployment.yaml, croissant.json, manifest.json and, with a key, signature.json.

    Guarantee: a function of the files that lie there, all of which crossed the wall, and of settings.
    Args:
        folder: the release with all its other files.
        statement: the content of its privacy.json; of an older format it has no papers but the manifest.
        schema: with which the synthetic table was written.
        table: the name of the synthetic table's file.
        rows_asked: how many synthetic rows the settings asked for, or None.
        given: what the rows were asked to satisfy (see `Manifest`), or None.
    """
    fingerprint = None if signer is None else signer.fingerprint
    bound = Manifest(__version__, rows_asked, fingerprint, file_digests(folder), given)
    texts = {} if is_older(statement) else texts_of(statement, schema, table, bound)
    for name, text in texts.items():
        write_whole(folder / name, text)
    more = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    content = replace(bound, files=dict(sorted({**bound.files, **more}.items()))).write(folder)
    if signer is not None:
        write_signature(folder, signer, content)


def check_papers(statement: Json, schema: Schema, release: Path) -> None:
    """UserError where no papers can be written of a statement: whoever made it may have bound it, too."""
    if statement.get("version") != STATEMENT_VERSION:
        return  # passed on without papers
    try:
        texts_of(statement, schema, CSV.released, Manifest("", None, None, dict.fromkeys((CSV.released, *NAMED), "")))
    except BROKEN as error:
        fix = f"python -m pipeline verify {release} says more; do not trust this one"
        what = f"privacy.json is not as a run writes it ({type(error).__name__})"
        raise UserError(what, where=str(release), fix=fix) from error


def texts_of(statement: Json, schema: Schema, table: str, bound: Manifest) -> dict[str, str]:
    """File → text of the papers that people and catalogues read; arguments as of `write_papers`.

    Args:
        bound: what the manifest says, with the digests of all other files.
    """
    digests = bound.files
    tables = {name: digests[name] for name in (table, persons_of(table)) if name == table or name in digests}
    named = tables | {name: digests[name] for name in NAMED}
    return {
        "statement.html": render_statement(statement, bound, named),
        "deployment.yaml": registry_record(statement, bound),
        "croissant.json": croissant(statement, schema, tables, bound),
    }


#: The terms of the context of Croissant 1.0 (MLCommons 2024), in its order; those that are no `cr:NAME`.
TERMS = (
    "@language @vocab citeAs column conformsTo cr rai data dataType dct equivalentProperty examples extract field "
    "fileProperty fileObject fileSet format includes isLiveDataset jsonPath key md5 parentField path recordSet "
    "references regex repeated replace samplingRate sc separator source subField transform"
)
OWN_TERMS: JsonDict = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
}
CONTEXT = {name: OWN_TERMS.get(name, f"cr:{name}") for name in TERMS.split()}
KINDS = {"integer": "sc:Integer", "float": "sc:Float", "date": "sc:Date", "datetime": "sc:DateTime"}


def croissant(statement: Json, schema: Schema, tables: Mapping[str, str], bound: Manifest) -> str:
    """The metadata as JSON-LD; arguments as of `texts_of`.

    Args:
        tables: the file's name in the release → its SHA-256; a second one is that of persons.
    """
    part, words = only_rows_with(bound.given), all_words(statement)
    promise, published = _promise(statement, words), statement["published"]
    facts = {
        "datePublished": published["date"],
        "license": published["license"],
        "creator": None
        if published["publisher"] is None
        else {"@type": "Organization", "name": published["publisher"]},
        "citeAs": None
        if published["publisher"] is None
        else f"{published['publisher']}: synthetic {statement['table']}",
        "rai:dataUseCases": published["intended_use"],
    }
    record = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": f"synthetic {statement['table']}{part}",
        "description": f"A synthetic table of {statement['table']}{part}. {promise}",
        "version": "1.0.0",
        **{key: value for key, value in facts.items() if value is not None},
        "rai:personalSensitiveInformation": promise,
        "rai:dataManipulationProtocol": f"Marginals were measured with noise ({statement['accountant']}). "
        f"{words['how_rows_were_made']}",
        "rai:dataLimitations": f"{words['alike_where_measured']}; small groups are less exact. "
        "The noise of each answer stands in marginals/ and measurements/.",
        "distribution": [_file(name, digest) for name, digest in tables.items()],
        "recordSet": _record_sets(schema, [*tables]),
    }
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _file(name: str, digest: str) -> JsonDict:
    form = format_of_name(name)
    assert form is not None, name
    about = {"@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": name}
    return {**about, "encodingFormat": form.media, "sha256": digest}


def _record_sets(schema: Schema, tables: Sequence[str]) -> list[JsonDict]:
    """The columns of each file; of two, what is constant in a person stands in the second, and the id in both."""
    ids, unit, rows = schema.rules.id_column, schema.rules.unit, ("rows", "persons")
    sets: list[JsonDict] = []
    for name, table in zip(rows, tables, strict=False):
        apart = () if unit is None or len(tables) == 1 else unit.constant
        own = [c for c in schema.held if (c.name in apart) == (name == "persons")]
        fields = [_field(name, table, c.name, _kind(c)) for c in own]
        if ids and ids not in {c.name for c in schema.held}:
            fields.append(_field(name, table, ids, "sc:Text"))
        sets.append({"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields})
    for records, persons in pairwise(sets):
        persons["key"] = {"@id": f"persons/{ids}"}
        records["field"][-1]["references"] = {"field": {"@id": f"persons/{ids}"}}
    return sets


def _promise(statement: Json, words: Json) -> str:
    """What the release promises, and to whom; or that it does not."""
    if not statement["private"]:
        return f"NOT private: {'; '.join(words['reasons_not_private'])}."
    others = not_ours_lines(statement.get("not_ours"))
    sentences = [words["unit_ids"], *(f"Warning: {w}" for w in words["warnings"])]
    sentences.append(f"Not covered by the audit of this software: {'; '.join(others)}" if others else "")
    return " ".join([words["promise"], *(f"{part}." for part in sentences if part)])


def _kind(column: Column) -> str:
    if column.kind == "categorical" and (column.whole or column.codes is not None) and column.other is None:
        return "sc:Integer"
    written = column.format is not None or column.width is not None or column.decimal != "."
    if written or column.kind not in KINDS:
        return "sc:Text"
    return KINDS[column.kind]


def _field(rows: str, table: str, name: str, kind: str) -> JsonDict:
    return {
        "@type": "cr:Field",
        "@id": f"{rows}/{name}",
        "name": name,
        "dataType": kind,
        "source": {"fileObject": {"@id": table}, "extract": {"column": name}},
    }


def registry_record(statement: Json, bound: Manifest) -> str:
    """The record as YAML; what only people know is listed on top and stands as a text to replace.

    A release that is not private gets no privacy loss in its record. Arguments as of `texts_of`.
    """
    published = statement["published"]
    left = [name for name in ("publisher", "publisher_type", "date", "intended_use", "region") if not published[name]]
    head = ["# A draft for the registry of differential privacy deployments, made from privacy.json."]
    if left:
        head.append(f"# Fill in by hand, or by settings: {', '.join(f'statement.{name}' for name in left)}")
    if not statement["private"]:
        head.append("# NOT PRIVATE: this release makes no promise; do not register it.")
    text = text_of(
        "deployment.yaml.j2",
        said=statement,
        words=all_words(statement),
        charges=Counter(e["mechanism"] for e in statement["events"]),
        others=not_ours_lines(statement.get("not_ours")),
        part=only_rows_with(bound.given),
        slug=re.sub(r"[^a-z0-9]+", "-", f"synthetic {statement['table']}".lower()).strip("-"),
        left=left,
    )
    record = yaml.dump(yaml.safe_load(text), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)
    return "\n".join(head) + "\n" + str(record)


class _Dumper(yaml.SafeDumper):
    """Several lines stand as a block, so that a reader sees them as they are."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(str, _Dumper.represent_text)


def render_statement(statement: Json, bound: Manifest, digests: Mapping[str, str]) -> str:
    """The page, from privacy.json and what the manifest says beside it: the same input gives the same bytes.

    Args:
        digests: path in the release → SHA-256, of the synthetic table, of the measurements and of privacy.json.
    """
    return rendered(
        "statement.html.j2",
        said=statement,
        words=all_words(statement),
        odds=_odds_of(statement["guarantee"]),
        measured=_measured(statement["events"]),
        groups=[(g["units"], g["epsilon"], g["delta"]) for g in statement["group_privacy"]],
        lost=sum(not e["answered"] for e in statement["events"]),
        others=not_ours_lines(statement.get("not_ours")),
        curve=_curve(statement["curve"], statement["guarantee"]),
        rows_asked=bound.rows_asked,
        given=bound.given,
        condition="" if bound.given is None else condition_in_words(bound.given["where"]),
        signer=bound.signer,
        digests=digests,
        two=any(persons_of(name) in digests for name in digests),
    )


def _odds_of(promise: Mapping[str, float]) -> dict[str, str]:
    """What ε and δ mean for odds: the factor e^ε, what even odds become in per cent, and 1 / δ."""
    epsilon, delta = promise["epsilon"], promise["delta"]
    share = 1 / (1 + math.exp(-epsilon))
    beyond_use = f"e^{rounded_up(epsilon, 4)}, more than anybody can use,"
    return {
        "factor": rounded_up(math.exp(epsilon), 3) if epsilon < 25 else beyond_use,
        "even": f"{rounded_up(100 * share, 3)} %" if share < 0.9995 else "practically 100 %",
        "failure": ""
        if delta == 0
        else f"{math.floor(1 / Fraction(str(delta))):,}"
        if delta >= 1e-12
        else rounded_down(1 / delta, 3).replace("e+", "e"),
    }


def _measured(events: Sequence[Json]) -> JsonDict:
    """Of how many columns and of how many of their combinations there are noisy counts, of units, and of persons."""
    answered = [e for e in events if e.get("clique") and e["answered"]]
    cliques = {tuple(e["clique"]) for e in answered if not e["id"].startswith((UNITS, PERSONS))}
    # A column and its fine cells are one.
    columns = len({name.removesuffix(FINE) for c in cliques for name in c})
    units = any(e["id"].startswith(UNITS) for e in answered)
    persons = sum(e["id"].startswith(PERSONS) for e in answered)
    return {"columns": columns, "combinations": sum(len(c) > 1 for c in cliques), "units": units, "persons": persons}


def _curve(points: Sequence[Sequence[float | None]], guarantee: Mapping[str, float]) -> JsonDict | None:
    """Where the points of ε over δ lie on a picture of 300 × 96, δ falling to the right; None where ε has no bound."""
    points_shown = [(at, value) for at, value in points if at is not None and value is not None]
    if len(points_shown) < 2:
        return None
    first, last, most = points_shown[0][0], points_shown[-1][0], max(e for _, e in points_shown) or 1.0
    across, up = Scale(first, last, 34.0, 292.0, logarithmic=True), Scale(0.0, most, 78.0, 8.0)

    def place(delta: float, epsilon: float) -> tuple[str, str]:
        return f"{across.at(delta):.1f}", f"{up.at(epsilon):.1f}"

    ticks = [(place(d, 0)[0], f"{d:.0e}".replace("e-0", "e-")) for d, _ in points_shown[::3]]
    own = guarantee["delta"]
    return {
        "line": " ".join(",".join(place(d, e)) for d, e in points_shown),
        "ticks": ticks,
        "most": few_digits(most),
        "here": place(own, min(guarantee["epsilon"], most)) if last <= own <= first else None,
    }
