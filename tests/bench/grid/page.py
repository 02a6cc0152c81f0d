"""The grid's page: regrets by method, failed aims, and every cell."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from tests.bench.grid.methods import AUTO, BASELINE, METHODS
from tests.bench.grid.regrets import FIGURES, Cell, Estimate, Place, cells, failures, overall

INTRODUCTION = """# Every method on every table

By `python -m tests.bench.grid`, at the same ε, δ = 1/n² and unit (one record). Errors are mean total
variation distances of all 1-way, and all or 300 fixed 2-way and 3-way marginals, by an independent count. A regret is a
method's mean error over that of the best method in its cell (a table at an ε); ± is one standard error, absent where
there was one run. Where the seed draws the table, methods are compared on the seeds that they share. Dependence is the
share of the real dependence of pairs that is left; its regret is the share of the best method's, at most 1. Processor
time of ours is without start, imports and compilation, that of peers with them. The tables are public; these figures
are not private ones."""


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    found = cells(rows)
    known = [m.name for m in METHODS if any(r["method"] == m.name for r in rows)]
    parts = [INTRODUCTION, _summary(found, known, rows), *_by_epsilon(found, known)]
    if AUTO in known:
        parts += [_aims(found), *_beside_peers(rows)]
    return "\n\n".join([*parts, _cells(found, known), _troubles(rows)]).strip() + "\n"


def shown(estimate: Estimate | None, digits: int = 3) -> str:
    """A number with its standard error."""
    if estimate is None:
        return ""
    error = "" if estimate.error is None else f" ± {estimate.error:.{digits}f}"
    return f"{estimate.value:.{digits}f}{error}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _summary(found: Mapping[Place, Cell], known: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for method in known:
        own = [r for r in rows if r["method"] == method]
        good = [r for r in own if "failed" not in r]
        line = [method, str(len(good)), str(len(own) - len(good))]
        for figure in ("one", "two", "three"):
            line += _mean_and_worst(found.values(), figure, method, worst=max)
        line += _mean_and_worst(found.values(), "kept", method, worst=min)
        base = overall(cell.against("two", method, BASELINE) for cell in found.values())
        spent = f"{fmean(r['cpu'] for r in good):.1f}" if good else ""
        peak = f"{max(r['peak_mb'] for r in good):,.0f}" if good else ""
        lines.append([*line, shown(base), spent, peak])
    head = ["method", "runs", "failed"]
    for title in ("1-way", "2-way", "3-way", "dependence"):
        head += [f"{title} regret", "worst"]
    head += ["2-way ÷ independent", "processor s", "peak MB"]
    return "## Regrets over all cells\n\n" + table(head, lines)


def _mean_and_worst(found: Iterable[Cell], figure: str, method: str, *, worst: Any) -> list[str]:
    regrets = [r for cell in found if (r := cell.regret(figure, method)) is not None]
    if not regrets:
        return ["", ""]
    return [shown(overall(regrets)), shown(worst(regrets, key=lambda r: r.value), 2)]


def _by_epsilon(found: Mapping[Place, Cell], known: Sequence[str]) -> list[str]:
    """Mean regrets at each ε, where there are several."""
    epsilons = sorted({e for _, e in found})
    if len(epsilons) < 2:
        return []
    lines = []
    for method in known:
        line = [method]
        for epsilon in epsilons:
            here = [cell for (_, e), cell in found.items() if e == epsilon]
            line += [shown(overall(c.regret(f, method) for c in here)) for f in ("two", "three")]
        lines.append(line)
    head = ["method", *(f"ε = {e:g}, {k}-way" for e in epsilons for k in (2, 3))]
    return ["## Mean regrets at each ε\n\n" + table(head, lines)]


def _aims(found: Mapping[Place, Cell]) -> str:
    missed = failures(found)
    if not missed:
        return "## Failed aims\n\nNo cell of the default fails an aim beyond two standard errors."
    lines = [[f.place[0], f"{f.place[1]:g}", f.aim, shown(f.estimate)] for f in missed]
    return "## Failed aims\n\nBeyond two standard errors.\n\n" + table(["table", "ε", "aim", "value"], lines)


def _beside_peers(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The default's processor time beside each peer's, on the tables where both came to an end."""
    spent = {(r["method"], r["table"], r["epsilon"], r["seed"]): r["cpu"] for r in rows if "failed" not in r}
    lines = []
    for peer in (m.name for m in METHODS if m.peer and any(r["method"] == m.name for r in rows)):
        stopped = [r["table"] for r in rows if r["method"] == peer and "failed" in r]
        both = [
            (theirs, spent[AUTO, *run])
            for (who, *run), theirs in spent.items()
            if who == peer and (AUTO, *run) in spent
        ]
        sums = [sum(b[i] for b in both) for i in (0, 1)]
        times = [f"{sums[0]:,.0f}", f"{sums[1]:,.0f}", f"{sums[1] / sums[0]:.2f}"] if both else ["", "", ""]
        lines.append([peer, str(len(both)), ", ".join(stopped), *times])
    if not lines:
        return []
    head = ["peer", "runs", "stopped or failed", "its processor s", "the default's in the same runs", "ratio"]
    return ["## Processor time beside the peers\n\n" + table(head, lines)]


def _cells(found: Mapping[Place, Cell], known: Sequence[str]) -> str:
    lines = []
    for (name, epsilon), cell in sorted(found.items()):
        for method in known:
            if not any(method in by_method for by_method in cell.values.values()):
                continue
            figures = [shown(cell.mean(f, method), 4) for f in FIGURES]
            regrets = [shown(cell.regret(f, method), 2) for f in ("two", "three")]
            lines.append([name, f"{epsilon:g}", method, *figures, *regrets])
    head = ["table", "ε", "method", "1-way", "2-way", "3-way", "dependence", "worst pair", "measured pairs"]
    head += ["unmeasured pairs", "2-way regret", "3-way regret"]
    return "## Every cell\n\n" + table(head, lines)


def _troubles(rows: Iterable[Mapping[str, Any]]) -> str:
    lines = [[r["table"], f"{r['epsilon']:g}", r["method"], str(r["seed"]), r["failed"]] for r in rows if "failed" in r]
    if not lines:
        return ""
    return "## Runs without a result\n\n" + table(["table", "ε", "method", "seed", "why"], lines)
