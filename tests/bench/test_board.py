"""The board of BENCHMARKS.md holds the rows that the experiment wrote, and no others."""

from pathlib import Path

from pipeline.experiments.findings import Findings, write_findings
from tests.bench.board import every_run, joined
from tests.bench.tables_apart import BOARD, table_under

TABLE = "| table | ε |\n| --- | --- |\n| old | 1 |"
PAGE = f"# Benchmarks\n\n{BOARD}: a table\n\n![](board.svg)\n\n{TABLE}\n\nWords.\n\n## Other\n"


def written(folder: Path, name: str, scores: list[float]) -> Path:
    """What a run of the experiment leaves of one feature set."""
    facts = {"epsilon": 1.0, "metric": "sdnist_kmarginal", "goal": "high", "floor": 930.0, "seconds": 1.0}
    facts |= {"dataset": name, "reported": 841, "place": "MST, archive", "promise": "ε = 1"}
    rows = tuple({**facts, "run": i, "score": score} for i, score in enumerate(scores, 1))
    setting = {"experiment": "nist_crc", "smoke": False, "data": {"kind": "a table"}}
    (folder / name / "internal").mkdir(parents=True)
    write_findings(Findings(rows, setting, "NIST", "nothing"), folder / name / "internal")
    return folder / name


def test_the_board_holds_what_the_runs_wrote_and_every_run_stands_in_its_file(tmp_path):
    folders = [written(tmp_path, "industry", [900.0, 910.0]), written(tmp_path, "family", [800.0])]
    page = joined(PAGE, folders)
    head, *rows = table_under(page, BOARD)
    assert [row[:2] for row in rows] == [["industry", "1"], ["family", "1"]]
    assert [dict(zip(head, row, strict=True))["we get"] for row in rows] == ["905", "800"]
    assert page.startswith(PAGE[: PAGE.index("| table")]) and page.endswith("|\n\nWords.\n\n## Other\n")
    assert "| old " not in page and joined(page, folders) == page
    names, *runs = every_run(folders)
    assert [dict(zip(names, run, strict=True))["score"] for run in runs] == ["900.0", "910.0", "800.0"]
