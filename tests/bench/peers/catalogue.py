"""Who takes part: ours and the peers, which of them compare, on which tables."""

from dataclasses import dataclass

#: Where the real tables are absent, this stand-in takes their place.
STAND_IN = "demo"


@dataclass(frozen=True)
class Contestant:
    """One way to make or to score a table.

    Attributes:
        task: `synthesis` or `scoring`.
        method: `mst`, `aim`, or what follows the two tables of our `score`.
        environment: the file of requirements that it runs in; empty for ours.
        driver: the script that runs it; empty for ours.
        rival: the one of ours that it is compared with; empty for ours.
        tables: the tables it runs on by default; those that take long leave out the large one.
        once: slow by nature: it runs last, and once.
        warm: compiled code is on disk, as after any first use; a run that does not count makes it.
    """

    name: str
    title: str
    task: str
    method: str
    environment: str = ""
    driver: str = ""
    rival: str = ""
    tables: tuple[str, ...] = ("adult_codes", "acs")
    once: bool = False
    warm: bool = False

    @property
    def ours(self) -> bool:
        return not self.driver


def _tables(name: str, library: str, package: str, tables: tuple[str, ...]) -> tuple[Contestant, Contestant]:
    driver = f"{package}_tables"
    mst = Contestant(f"{name}-mst", f"MST {library}", "synthesis", "mst", package, driver, "ours-mst", tables)
    aim = Contestant(
        f"{name}-aim", f"AIM {library}", "synthesis", "aim", package, driver, "ours-aim", ("adult_codes",), True
    )
    return mst, aim


#: What follows the two tables of a report.
REPORT = "holdout={holdout} report={page}"
OURS = (
    Contestant("ours-mst", "ours, selection=mst synthesis=pgm", "synthesis", "mst"),
    Contestant("ours-aim", "ours, selection=aim synthesis=pgm", "synthesis", "aim", tables=("adult_codes",)),
    Contestant("ours-score", "ours, score", "scoring", "", warm=True),
    Contestant("ours-first", "ours, score, the first time after installing", "scoring", ""),
    Contestant("ours-report", "ours, score with holdout and report", "scoring", REPORT, warm=True),
    Contestant("ours-all", "ours, the same with all metrics", "scoring", f"{REPORT} metrics=all", warm=True),
)
_PAIRS = (
    _tables("mbi", "on mbi 2", "mbi", ("adult_codes", "acs")),
    _tables("opendp", "of OpenDP", "opendp", ("adult_codes",)),
    _tables("smartnoise", "of SmartNoise", "smartnoise", ("adult_codes",)),
    _tables("dpmm", "of dpmm", "dpmm", ("adult_codes",)),
)
PEERS = (
    Contestant("sdmetrics", "SDMetrics QualityReport", "scoring", "", "sdmetrics", "sdmetrics_scores", "ours-score"),
    Contestant("mostlyai-qa", "mostlyai-qa report", "scoring", "", "mostlyai", "mostlyai_scores", "ours-report"),
    *(mst for mst, _ in _PAIRS),
    *(aim for _, aim in _PAIRS),
)


def chosen(wanted: list[str]) -> list[Contestant]:
    """The peers whose name contains one of the given words (all where none is given), each after its rival of ours
    (scorers after all of ours).

    Raises:
        ValueError: a word fits no peer.
    """
    for word in wanted:
        if not any(word in p.name for p in PEERS):
            raise ValueError(f"--peers: no peer is called {word!r}; there are {', '.join(p.name for p in PEERS)}")
    peers = [p for p in PEERS if not wanted or any(word in p.name for word in wanted)]
    ours = [o for o in OURS if any(p.rival == o.name or p.task == o.task == "scoring" for p in peers)]
    quick = [c for c in (*ours, *peers) if not c.once]
    return sorted(quick, key=lambda c: c.task) + [p for p in peers if p.once]
