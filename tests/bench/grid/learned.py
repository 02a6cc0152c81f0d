"""Train on synthetic, test on real: two models on targets that people would predict, over seeds; resumable.

    DATA_DIR=... python -m tests.bench.grid.learned --seeds 5

Seven in ten rows are the table that is made private, the others the test, drawn anew by seed. Beside each method stand
models of the real training rows (the ceiling) and the majority (the floor).
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from tests.bench.grid import __main__ as grid
from tests.bench.grid.cell import ours
from tests.bench.grid.coded import GridTable
from tests.bench.grid.methods import METHODS, Method
from tests.bench.grid.page import shown
from tests.bench.grid.page import table as markdown
from tests.bench.grid.regrets import Results, Run, mean
from tests.bench.grid.tables import grid_table, table_names
from tests.evaluation.worlds import result_of

#: Table → its target: a class that people predict; of a generated table the last column.
TARGETS = dict.fromkeys(("adult", "adult_5000"), "income>50K") | dict.fromkeys(("network", "clicks", "binary"), "")
TARGETS |= {"acs_10_columns": "EMPSTAT", "drug_deaths": "Fentanyl", "taxi": "payment_type"}
LEARNED = ("auto", "independent", "indif_gum", "mst_pgm")
TRAIN_SHARE = 0.7
#: Of the quality of a model: the mean area under the ROC curve of the classes, and of their F1.
MEASURES = ("auc", "f1")


def learned(method: Method, table: GridTable, epsilon: float, seed: int) -> list[dict[str, Any]]:
    """A row a model: the measures of models that learned from synthetic and from real rows, and of the majority."""
    order = np.random.default_rng([seed, table.rows]).permutation(table.rows)
    cut = math.floor(TRAIN_SHARE * table.rows)
    train, test = table.coded.at(np.sort(order[:cut])), table.coded.at(np.sort(order[cut:]))
    target = TARGETS[table.name] or table.coded.domain.names[-1]
    made = ours(method, GridTable(table.name, train, table.drawn), epsilon, seed).table
    synthetic = CodedTable(train.domain, made.columns)
    frame = result_of("tstr", train, synthetic, {"predict": [target]}, holdout=test, seed=seed).frame
    kept = ["target", "model", *(f"{m}_{who}" for m in MEASURES for who in ("synthetic", "real", "majority"))]
    return [{k: row[k] for k in kept} for row in frame.to_dict(orient="records")]


def result(run: Run, root: Path, data: Path | None) -> dict[str, Any]:
    """One run; what a method cannot do is a result."""
    method = next(m for m in METHODS if m.name == run.method)
    table, start = grid_table(run.table, run.seed, data, root / "tables"), time.process_time()
    try:
        found: dict[str, Any] = {"models": learned(method, table, run.epsilon, run.seed)}
    except UserError as error:
        found = {"failed": str(error).splitlines()[0]}
    return {**run._asdict(), **found, "cpu": time.process_time() - start}


def page(rows: Iterable[Mapping[str, Any]]) -> str:
    """The results as Markdown: for each table, ε and model the methods' mean measures with a standard error."""
    good = [row for row in rows if "failed" not in row]
    lines = []
    for name, epsilon in sorted({(r["table"], r["epsilon"]) for r in good}):
        own = [r for r in good if (r["table"], r["epsilon"]) == (name, epsilon)]
        for model in own[0]["models"]:
            here, kind = [(r["method"], _model(r, model["model"])) for r in own], model["model"]
            for measure in MEASURES:
                line = [name, model["target"], f"{epsilon:g}", kind, measure]
                for method in LEARNED:
                    line.append(_mean([m[f"{measure}_synthetic"] for who, m in here if who == method]))
                once = {r["seed"]: _model(r, kind) for r in own}.values()  # the same for every method
                ends = [_mean([m[f"{measure}_{end}"] for m in once]) for end in ("real", "majority")]
                lines.append([*line, *ends])
    return markdown(["table", "target", "ε", "model", "measure", *LEARNED, "real rows", "majority"], lines) + "\n"


def _model(row: Mapping[str, Any], model: str) -> Mapping[str, Any]:
    return next(m for m in row["models"] if m["model"] == model)


def _mean(values: Sequence[float]) -> str:
    return shown(mean(dict(enumerate(values))))


def settings(arguments: Sequence[str]) -> argparse.Namespace:
    """The settings of a call; those that the grid has too mean the same."""
    form = argparse.ArgumentParser(prog="python -m tests.bench.grid.learned", description=__doc__)
    folder = Path(os.environ["DATA_DIR"]) if "DATA_DIR" in os.environ else None
    form.add_argument("--data", type=Path, default=folder, help="folder of the real tables; default $DATA_DIR")
    form.add_argument("--tables", type=grid.listed, default=[], help=f"by commas; default: all of {', '.join(TARGETS)}")
    form.add_argument("--methods", type=grid.listed, default=[], help=f"by commas; default: {', '.join(LEARNED)}")
    form.add_argument(
        "--epsilons", type=grid.listed_numbers, default=[0.1, 1.0, 10.0], help="by commas; default 0.1,1,10"
    )
    form.add_argument("--seeds", type=int, default=5, help="runs a cell (default 5)")
    form.add_argument("--root", type=Path, default=Path("build/grid"), help="results and page, in its folder learned")
    given = form.parse_args(arguments)
    if given.seeds < 1:
        form.error(f"--seeds: must be positive, got {given.seeds}")
    for what, asked, there in (("tables", given.tables, TARGETS), ("methods", given.methods, LEARNED)):
        for name in asked:
            if name not in there:
                form.error(f"--{what}: {name!r} is none of {', '.join(there)}")
    return given


def main(arguments: Sequence[str]) -> int:
    given = settings(arguments)
    names = [n for n in table_names(given.tables, given.data) if n in TARGETS]
    wanted = [m for m in METHODS if m.name in (given.methods or LEARNED)]
    root = given.root / "learned"
    known = Results(root / "results.jsonl")
    asked = grid.planned(names, wanted, given.epsilons, given.seeds)
    for run in asked:
        if run not in known.rows:
            known.add(result(run, root, given.data))
            print(f"{run.table}, {run.method}, ε = {run.epsilon:g}, seed {run.seed}", file=sys.stderr, flush=True)
    (root / "page.md").write_text(page([known.rows[run] for run in asked]), encoding="utf-8")
    print(f"written: {root / 'page.md'}")
    return 0


if __name__ == "__main__":
    os.nice(5)
    sys.exit(main(sys.argv[1:]))
