"""Codebooks: in JSON of the Synthetic Data Vault (one table, V1) and Frictionless, in XML of DDI without entities."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, fromstring

from mechanisms.public.drafts.metadata.metadata_files import Described, Metadata, named
from mechanisms.public.errors import UserError
from mechanisms.public.plain_files import json_mapping
from mechanisms.public.schema.dialect import PLAIN, Dialect, parse_dialect

#: Kinds of SDV → ours; all others name or describe persons, or are free texts.
SDV_KINDS = {"categorical": "categorical", "boolean": "flag", "numerical": "float", "datetime": "datetime"}
#: Kinds of places, which are lists where they are said to be no personal data.
SDV_PLACES = ("country_code", "administrative_unit", "state", "state_abbr", "city", "postcode")
TABLE_KINDS = {"string": "categorical", "integer": "integer", "number": "float", "boolean": "flag", "date": "date"}
TABLE_KINDS |= {"datetime": "datetime", "year": "integer"}
#: What a table schema says of a field, and what this uses of it.
CONSTRAINTS = {"required", "unique", "minimum", "maximum", "enum"}
OF_FIELD = {"name", "type", "format", "title", "description", "constraints", "missingValues", "categories"}
OF_FIELD |= {"categoriesOrdered", "trueValues", "falseValues", "decimalChar", "groupChar", "bareNumber"}
ADDRESSES = {"email", "uri", "uuid", "binary"}


def of_json(text: str, name: str, where: str) -> Metadata:
    """What a file of either form says.

    Raises:
        UserError: it is of neither form; several tables. ValueError: no JSON mapping.
    """
    content: Any = json_mapping(text)
    if "METADATA_SPEC_VERSION" in content:
        return _sdv(content, name, where)
    of_file: Any = {"schema": content}
    if "resources" in content:
        name, of_file = _only({str(r.get("name", name)): r for r in content["resources"]}, where)
    if isinstance(content := of_file.get("schema"), Mapping) and isinstance(content.get("fields"), list):
        return _frictionless(content, name, *_dialect(of_file))
    fix = "SDV's metadata, a Frictionless table schema, or a data package that holds one; or a table: CSV, Parquet"
    raise UserError("JSON of a form that is not known", where=where, fix=fix)


def _only(tables: Mapping[str, Any], where: str) -> tuple[str, Any]:
    """The one table.

    Raises:
        UserError: there are several, or there is none.
    """
    if len(tables) != 1:
        problem = f"it describes {len(tables)} tables: {', '.join(map(repr, tables))}"
        raise UserError(problem, where=where, fix="a file that describes one table: a schema is of one")
    return next(iter(tables.items()))


def _sdv(content: Mapping[str, Any], name: str, where: str) -> Metadata:
    if "tables" in content:
        name, content = _only(content["tables"], where)
    keys = {content.get("primary_key"), *(content.get("alternate_keys") or ())} - {None}
    person = content.get("sequence_key")
    described = [_sdv_column(n, c, keys, person) for n, c in content["columns"].items()]
    used = {"columns", "primary_key", "alternate_keys", "sequence_key", "METADATA_SPEC_VERSION"}
    return Metadata("metadata of SDV", name, described, unused=[k for k in content if k not in used])


def _sdv_column(name: str, given: Mapping[str, Any], keys: set[Any], person: object) -> Described:
    sdtype = str(given.get("sdtype"))
    if name == person:
        return Described(name, remarks=[f"sequence_key: does it name persons? privacy.unit={name}"])
    if name in keys or sdtype == "id":
        return Described(name, remarks=["an id"])
    kind = SDV_KINDS.get(sdtype, "categorical" if sdtype in SDV_PLACES and given.get("pii") is False else "")
    if not kind or given.get("pii") is True:
        return Described(name, remarks=[f"sdtype {sdtype}: persons or free text"])
    described = Described(name, kind, remarks=[f"sdtype {sdtype}"])
    order = given.get("order")
    if kind == "categorical" and isinstance(order, list) and order:
        described.values, described.more = order, {"ordinal": True}
    number, form = str(given.get("computer_representation", "Float")), str(given.get("datetime_format") or "")
    if kind == "float" and "Int" in number:
        described.kind = "integer"
        if number.endswith("Int8"):
            described.more = {"within": [0, 255] if number.startswith("U") else [-128, 127]}
    if kind == "flag":
        described.more = {"spellings": "common"}
    if kind == "datetime":
        described.kind = "datetime" if not form or any(h in form for h in ("%H", "%I", "%X", "%c")) else "date"
        described.more = {"format": form} if form and form != "%Y-%m-%d" else {}
    return described


def _dialect(of_file: Mapping[str, Any]) -> tuple[Dialect, list[str]]:
    """How the table's file is written, and what of that is not used."""
    own = of_file.get("dialect", {})
    if not isinstance(own, Mapping):
        return PLAIN, ["dialect"]
    given = {"delimiter": own.get("delimiter", PLAIN.delimiter), "encoding": of_file.get("encoding", PLAIN.encoding)}
    try:
        return parse_dialect(given, ""), [f"dialect: {k}" for k in own if k != "delimiter"]
    except UserError:
        return PLAIN, [k for k in ("dialect", "encoding") if k in of_file]


def _frictionless(content: Mapping[str, Any], name: str, dialect: Dialect, unused: list[str]) -> Metadata:
    keys = content.get("primaryKey") or []
    keys = {keys} if isinstance(keys, str) else {*keys}
    gaps = [g for g in content.get("missingValues", [""]) if g]
    unused += [k for k in content if k not in {"fields", "primaryKey", "missingValues", "$schema", "name", "title"}]
    described = [_field(given, keys, gaps) for given in content["fields"]]
    for given in content["fields"]:
        own = [f"{given.get('name')}: {k}" for k in given if k not in OF_FIELD or (k == "bareNumber" and not given[k])]
        unused += [*own, *(f"{given.get('name')}: {k}" for k in given.get("constraints") or () if k not in CONSTRAINTS)]
    return Metadata("a Frictionless table schema", name, described, unused=unused, dialect=dialect)


def _field(given: Mapping[str, Any], keys: set[str], gaps: Sequence[Any]) -> Described:
    name, kind, form = str(given.get("name")), str(given.get("type", "string")), str(given.get("format", "default"))
    rules = given.get("constraints") or {}
    if name in keys or rules.get("unique") is True:
        return Described(name, remarks=["a key: no two rows share it"])
    if kind not in TABLE_KINDS or form in ADDRESSES:
        return Described(name, remarks=[f"type {kind}{f', format {form}' if form in ADDRESSES else ''}"])
    described = Described(
        name, TABLE_KINDS[kind], remarks=[str(given[k]) for k in ("title", "description") if given.get(k)]
    )
    values, required = rules.get("enum") or given.get("categories") or (), rules.get("required") is True
    own = [str(g["value"] if isinstance(g, Mapping) else g) for g in given.get("missingValues", gaps)]
    codes = {
        v["value"] if isinstance(v, Mapping) else v: v.get("label") if isinstance(v, Mapping) else v for v in values
    }
    if codes and described.kind in {"categorical", "integer"}:
        described.kind, described.values = "categorical", [c for c in codes if required or str(c) not in own]
        described.remarks += [words for words in [named(codes)] if words]
        described.more = {"ordinal": True} if given.get("categoriesOrdered") else {}
    elif described.kind == "flag":
        sides = ("true", given.get("trueValues")), ("false", given.get("falseValues"))
        described.more = {side: texts for side, texts in sides if texts}
    elif described.kind != "categorical":
        numeric, ends = described.kind in {"integer", "float"}, (rules.get("minimum"), rules.get("maximum"))
        described.low, described.high = (json.loads(e) if numeric and isinstance(e, str) else e for e in ends)
    if described.kind == "float":
        described.more = {"decimal": given["decimalChar"]} if given.get("decimalChar", ".") != "." else {}
        described.more |= {"strip": [given["groupChar"]]} if given.get("groupChar") else {}
    if described.kind in {"date", "datetime"} and form not in {"default", "any"}:
        described.more = {"format": form}
    described.missing = not required and ([g for g in own if g] or True)
    return described


#: Elements of a variable that this uses; all others are named.
USED = {"labl", "catgry", "catValu", "varFormat", "valrng", "range", "item", "invalrng", "location"}
#: Figures that were counted from the rows.
COUNTED = {"sumStat", "catStat"}


def of_ddi(text: str, name: str, where: str) -> Metadata:
    """What a codebook says of its variables. Figures that it counts from rows (sumStat, catStat) are not read.

    Raises:
        UserError: a document type, whose entities may stand for any amount of text and for other files; no variables.
        ParseError: no XML.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        fix = "take the <!DOCTYPE …> out: entities can stand for any amount of text, and for other files"
        raise UserError("the XML declares a document type", where=where, fix=fix)
    root = fromstring(text)  # noqa: S314 - nothing in it stands for anything else
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    variables = list(root.iter("var"))
    if not variables:
        raise UserError("no variables (var) in this XML", where=where, fix="a DDI-Codebook, with dataDscr")
    unused = {e.tag for v in variables for e in v.iter() if e is not v and e.tag not in USED}
    title = next((e.text for e in root.iter("titl") if e.text), None)
    remarks = [f"{tag} (counted from the rows)" if tag in COUNTED else tag for tag in sorted(unused)]
    return Metadata("a DDI codebook", " ".join((title or name).split()), [*map(_variable, variables)], unused=remarks)


def _text(element: Element | None) -> str:
    return " ".join((element.text or "").split()) if element is not None else ""


def _variable(var: Element) -> Described:
    form = var.find("varFormat")
    numeric = form is not None and form.get("type") == "numeric"
    described = Described(
        var.get("name") or str(var.get("ID")), remarks=[label for label in [_text(var.find("labl"))] if label]
    )
    gaps = [g.get("VALUE", "") for g in var.iterfind("invalrng/item")]
    gaps += [_text(c.find("catValu")) for c in var.iterfind("catgry") if c.get("missing") in {"Y", "yes"}]
    codes = {_text(c.find("catValu")): _text(c.find("labl")) for c in var.iterfind("catgry")}
    codes = {code: label for code, label in codes.items() if code and code not in gaps}
    described.missing = [*dict.fromkeys(filter(None, gaps))] or True
    bounds = var.find("valrng/range")
    if codes and var.get("intrvl") != "contin":
        described.kind, described.values = "categorical", [*codes]
        described.more = {"ordinal": True} if var.get("nature") == "ordinal" else {}
        described.remarks += [words for words in [named(codes), _without_label(bounds, codes)] if words]
        return described
    if form is not None and form.get("category") in {"date", "time"}:
        described.kind = "date" if form.get("category") == "date" else ""
        described.remarks.append("which format has it?" if described.kind else "a time of the day")
        return described
    described.kind = ("float" if var.get("dcml", "0") not in {"0", ""} else "integer") if numeric else "categorical"
    if numeric and bounds is not None:
        described.low, described.high = (_number(bounds.get(end), described.kind) for end in ("min", "max"))
        described.remarks.append("is the range the form's, or what the rows show?")
    described.more = {"decimals": int(var.get("dcml", "0"))} if described.kind == "float" else {}
    return described


def _without_label(bounds: Element | None, codes: Collection[str]) -> str:
    """What is asked of a range of whole numbers that holds more of them than have a label: ends of scales alone may."""
    low, high = (_number(None if bounds is None else bounds.get(end), "integer") for end in ("min", "max"))
    if low is None or high is None or high - low < len(codes):
        return ""
    return f"has each value from {low} to {high} a label? if not: kind: integer, min: {low}, max: {high}"


def _number(text: str | None, kind: str) -> float | int | None:
    try:
        return None if text is None else int(float(text)) if kind == "integer" else float(text)
    except (ValueError, OverflowError):
        return None
