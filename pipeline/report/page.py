"""The page around the sections: styles for light and dark, phone and desktop, and the banner; no script, no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

CSS = """
:root{color-scheme:light dark;--paper:#fbfaf8;--card:#fff;--ink:#1d2127;--soft:#5d6673;--line:#e2dfd9;--real:#2563c9;
--made:#c2620a;--heat:#b4232d;--good:#1f7a4d;--warn:#8a1c24;--warnbg:#fdecec;--track:#ebe8e2}
@media (prefers-color-scheme:dark){:root{--paper:#14171c;--card:#1c2027;--ink:#e8e6e1;--soft:#a0a8b4;--line:#333a45;
--real:#7fb0ff;--made:#f2a65a;--heat:#ff6b6b;--good:#5fcf97;--warn:#ffb4b4;--warnbg:#3a1d20;--track:#2b313b}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
.banner{background:var(--warnbg);color:var(--warn);padding:.7rem 1.2rem;font-weight:600}
main{max-width:1180px;margin:0 auto;padding:1.2rem}
h1{font-size:1.7rem;line-height:1.2;margin:.6rem 0 .2rem}
h2{font-size:1.25rem;margin:2.4rem 0 .3rem;padding-top:.4rem;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:.2rem 0 .3rem;overflow-wrap:anywhere}
p{margin:.3rem 0 .8rem;max-width:75ch}
.soft,figcaption{color:var(--soft);font-size:.88rem}
nav{display:flex;flex-wrap:wrap;gap:.2rem .9rem;font-size:.9rem;margin:.6rem 0}
a{color:var(--real)}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));gap:1rem}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.8rem .9rem;min-width:0}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,135px),1fr));gap:.8rem;margin:1rem 0}
.facts .card b{display:block;font-size:1.35rem;line-height:1.25;overflow-wrap:anywhere}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.88rem;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--soft);font-weight:600}
td.n,th.n{text-align:right}td.n{white-space:nowrap}
.n+td:not(.n),.n+th:not(.n){padding-left:.5rem}
.card+.scroll,.scroll+.scroll,.side+h3{margin-top:1rem}
.scroll.card{width:fit-content}.side{display:flex;flex-wrap:wrap;gap:1rem;align-items:flex-start}
.side>*{flex:0 1 auto}.small{display:flex;flex-wrap:wrap;gap:.8rem;flex:1 1 320px}.small figure{margin:0;flex:0 0 150px}
svg{display:block;max-width:none}
.fit svg{max-width:100%;height:auto}
svg text{fill:var(--ink);font:11px system-ui,-apple-system,"Segoe UI",sans-serif}
svg text.s{fill:var(--soft)}
.real{fill:var(--real)}.made{fill:var(--made)}.heat{fill:var(--heat)}.track{fill:var(--track)}
.area{stroke:var(--soft);stroke-width:.6;stroke-opacity:.6}
.lreal,.lmade,.lthin,.axis{fill:none;stroke-width:2}
.lreal{stroke:var(--real)}.lmade{stroke:var(--made);stroke-dasharray:6 3}.axis{stroke:var(--line);stroke-width:1}
.lthin{stroke:var(--soft);stroke-width:1;stroke-opacity:.28}
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .3em 0 .7em}
.gauge{position:relative;height:.55rem;min-width:110px;background:var(--track);border-radius:4px;margin-top:.45rem}
.gauge i{position:absolute;inset:0 auto 0 0;background:var(--real);border-radius:4px}
.gauge u{position:absolute;top:-.2rem;bottom:-.2rem;width:2px;background:var(--made)}
details{margin:.6rem 0}summary{cursor:pointer;color:var(--real)}
@media (max-width:600px){main{padding:.8rem}.wide th:last-child,.wide td:last-child{display:none}
h1{font-size:1.35rem}td,th{padding-right:.45rem}table{font-size:.8rem}
td:last-child{overflow-wrap:anywhere}}
@media print{nav{display:none}.card{break-inside:avoid}}
"""

BANNER = "NOT PRIVATE. This report saw raw rows. Keep it back: what may be published lies in release/ alone."


@dataclass(frozen=True)
class Section:
    """One part of the page.

    Attributes:
        name: its anchor.
        title: its heading.
        body: HTML.
    """

    name: str
    title: str
    body: str


def page(title: str, subtitle: str, lead: str, sections: Sequence[Section]) -> str:
    """The whole file.

    Args:
        title, subtitle: plain text.
        lead: HTML above the sections.
    """
    links = "".join(f'<a href="#{s.name}">{escape(s.title)}</a>' for s in sections)
    parts = "".join(f'<section id="{s.name}"><h2>{escape(s.title)}</h2>{s.body}</section>' for s in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)} (NOT private)</title><style>{CSS}</style></head>\n"
        f'<body><div class="banner" role="alert">{escape(BANNER)}</div><main><h1>{escape(title)}</h1>'
        f'<p class="soft">{escape(subtitle)}</p>{lead}<nav aria-label="Sections">{links}</nav>\n'
        f"{parts}</main></body></html>\n"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], *, html: Sequence[int] = ()) -> str:
    """A table; numbers stand right. `html` columns are taken as they are."""
    right = [i not in html and bool(rows) and all(_numeric(r[i]) for r in rows) for i in range(len(head))]
    cells = ['<th class="n">' if r else "<th>" for r in right]
    out = ["<tr>", *(f"{c}{escape(h)}</th>" for c, h in zip(cells, head, strict=True)), "</tr>"]
    for row in rows:
        out.append("<tr>")
        for i, value in enumerate(row):
            text = str(value) if i in html else escape(number(value))
            out.append(('<td class="n">' if right[i] else "<td>") + f"{text}</td>")
        out.append("</tr>")
    return f'<div class="scroll"><table>{"".join(out)}</table></div>'


def _numeric(value: Any) -> bool:
    """Whether a cell stands right: a number, a share in per cent, or nothing."""
    return isinstance(value, int | float | None) or (isinstance(value, str) and value.endswith("%"))


def number(value: Any) -> str:
    """A number in few digits; texts as they are; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if value != 0 and abs(value) < 1e-4:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def card(title: str, body: str, note: str = "") -> str:
    """A box with a heading; the title and the note are plain text."""
    said = f'<p class="soft">{escape(note)}</p>' if note else ""
    return f'<div class="card"><h3>{escape(title)}</h3>{said}{body}</div>'


def legend() -> str:
    """What the two colours stand for."""
    keys = (("real", "real"), ("made", "synthetic"))
    return (
        '<p class="soft">'
        + "".join(f'<span class="key" style="background:var(--{k})"></span>{t}' for k, t in keys)
        + "</p>"
    )
