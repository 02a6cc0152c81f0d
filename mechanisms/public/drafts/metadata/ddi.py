"""DDI-Codebook (XML): its variables, with their categories and ranges. Entities and document types are refused."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from mechanisms.public.drafts.metadata.known import Known, Metadata, named
from mechanisms.public.errors import UserError

#: Elements of a variable that this uses; all others are named.
USED = {
    "labl",
    "catgry",
    "catValu",
    "varFormat",
    "valrng",
    "range",
    "item",
    "invalrng",
    "missing",
    "location",
    "catStat",
}
#: Figures that were counted from the rows.
COUNTED = {"sumStat", "catStat"}
DEEPEST = 100


def of_ddi(content: bytes, name: str, where: str) -> Metadata:
    """What a codebook says of its variables. Figures that it counts from rows (sumStat, catStat) are not read.

    Raises:
        UserError: no XML; a document type or entities, which may stand for any amount of text; no variables.
    """
    root = parsed(content, where)
    variables = list(root.iter("var"))
    if not variables:
        raise UserError("no variables (var) in this XML", where=where, fix="a DDI-Codebook, with dataDscr")
    unused = {e.tag for v in variables for e in v.iter() if e is not v and e.tag not in USED}
    title = next((e.text for e in root.iter("titl") if e.text), None)
    said = [f"{tag} (counted from the rows)" if tag in COUNTED else tag for tag in sorted(unused)]
    return Metadata("a DDI codebook", " ".join((title or name).split()), [*map(_variable, variables)], unused=said)


def parsed(content: bytes, where: str) -> Element:
    """The elements of an XML text by their bare names; nothing in it stands for anything else.

    Raises:
        UserError: it is not well formed, is nested without end, or declares a document type.
    """
    builder, reader, depth = TreeBuilder(), expat.ParserCreate(namespace_separator="}"), 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise UserError(f"nested deeper than {DEEPEST} levels", where=where, fix="a DDI-Codebook")
        builder.start(tag.rpartition("}")[2], {k.rpartition("}")[2]: v for k, v in attributes.items()})

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag.rpartition("}")[2])

    def refuse(*_: Any) -> Any:
        fix = "take the <!DOCTYPE …> line out: entities can stand for any amount of text, and for other files"
        raise UserError("the XML declares a document type", where=where, fix=fix)

    reader.StartElementHandler, reader.EndElementHandler, reader.CharacterDataHandler = start, end, builder.data
    reader.StartDoctypeDeclHandler = reader.EntityDeclHandler = reader.ExternalEntityRefHandler = refuse
    try:
        reader.Parse(content, True)
    except expat.ExpatError as error:
        raise UserError(f"not well formed: {error}", where=where, fix="mend the XML") from error
    return builder.close()


def _text(element: Element | None) -> str:
    return " ".join((element.text or "").split()) if element is not None else ""


def _variable(var: Element) -> Known:
    form = var.find("varFormat")
    numeric = form is not None and form.get("type") == "numeric"
    known = Known(var.get("name") or str(var.get("ID")), said=[label for label in [_text(var.find("labl"))] if label])
    gaps = [g.get("VALUE", "") for g in var.iterfind("invalrng/item")]
    gaps += [_text(c.find("catValu")) for c in var.iterfind("catgry") if c.get("missing") in {"Y", "yes"}]
    codes = {_text(c.find("catValu")): _text(c.find("labl")) for c in var.iterfind("catgry")}
    codes = {code: label for code, label in codes.items() if code and code not in gaps}
    known.missing = [*dict.fromkeys(filter(None, gaps))] or True
    if codes and var.get("intrvl") != "contin":
        known.kind, known.values = "categorical", [*codes]
        known.said += [words for words in [named(codes)] if words]
        return known
    if form is not None and form.get("category") in {"date", "time"}:
        known.kind = "date" if form.get("category") == "date" else ""
        known.said.append("which format has it?" if known.kind else "a time of the day")
        return known
    known.kind = ("float" if var.get("dcml", "0") not in {"0", ""} else "integer") if numeric else "categorical"
    bounds = var.find("valrng/range")
    if numeric and bounds is not None:
        known.low, known.high = (_number(bounds.get(end), known.kind) for end in ("min", "max"))
        known.said.append("is the range the form's, or what the rows show?")
    known.more = {"decimals": int(var.get("dcml", "0"))} if known.kind == "float" else {}
    return known


def _number(text: str | None, kind: str) -> float | int | None:
    try:
        return None if text is None else int(float(text)) if kind == "integer" else float(text)
    except (ValueError, OverflowError):
        return None
