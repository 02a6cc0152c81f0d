"""DDI-Codebook (XML): its variables, with their categories and ranges. Entities and document types are refused."""

from __future__ import annotations

from collections.abc import Collection
from xml.etree.ElementTree import Element, fromstring

from mechanisms.public.drafts.metadata.metadata_files import Described, Metadata, named
from mechanisms.public.errors import UserError

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
