"""Whether numbers keep their shape under the default: means, quantiles and group means over seeds, against the aims.

    python -m tests.bench.numbers [--seeds 20] [--tables money,hospital] [--fine 256]

The real tables are looked for in $DATA_DIR; what is not there is passed over. Each run's figures are kept in
build/numbers.jsonl, so that an interrupted measurement goes on; delete the file to begin anew.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from mechanisms.public.schema.fine_cells import finest, plain_edges
from pipeline.report.plan_words import mean_errors
from pipeline.settings import build
from pipeline.settings.config import load_config
from pipeline.settings.specs import build_specs
from pipeline.stages import run
from tests.bench.clock import data_file

KEPT = Path("build/numbers.jsonl")
#: What the columns are held against: of the mean and of the 99 % quantile, relative; and of a group's mean.
MEAN, TAIL, GROUP = 0.02, 0.10, 0.10
#: Groups of more rows than this are looked at.
LARGE = 2_000
DEPARTMENTS = np.array(["surgery", "medicine", "maternity", "children", "heart", "bones", "skin", "eyes", "nerves"])


@dataclass(frozen=True)
class Case:
    """A table: `write` makes its file and schema, and returns their settings, or None where it has no data."""

    write: Callable[[Path], list[str] | None]
    columns: tuple[str, ...]
    groups: tuple[tuple[str, str], ...] = ()


def _adult(folder: Path) -> list[str] | None:
    path = data_file("adult.csv.gz")
    return None if path is None else ["data=adult", f"data.path={path}"]


def _taxi(folder: Path) -> list[str] | None:
    """The published extract holds fares as codes of bins."""
    path = data_file("chicago-taxi.csv.gz")
    return None if path is None else ["data=chicago_taxi", f"data.path={path}", "privacy.unit=record"]


def _generated(folder: Path, frame: pd.DataFrame, columns: str) -> list[str]:
    frame.to_csv(folder / "table.csv", index=False)
    head = "name: generated\nsource: invented\nconfirmed_public: true\ncolumns:\n"
    (folder / "schema.yaml").write_text(head + columns, encoding="utf-8")
    return ["data=table", f"data.path={folder / 'table.csv'}", f"data.schema={folder / 'schema.yaml'}"]


def _money(folder: Path) -> list[str]:
    """50,000 amounts, lognormal with σ = 1.5: the mean is three times the median, and 1 % hold a fifth of it."""
    rng = np.random.default_rng(15)
    amount = np.round(np.exp(rng.normal(7.5, 1.5, 50_000)), 2)
    frame = pd.DataFrame({"amount": amount, "branch": rng.integers(0, 5, amount.size)})
    columns = """  amount: {kind: float, min: 0, max: 10000000, bins: {count: 50}, decimals: 2, missing: false}
  branch: {kind: categorical, size: 5, missing: false}
"""
    return _generated(folder, frame, columns)


def _fares(folder: Path) -> list[str]:
    """100,000 fares in steps of a quarter, with peaks at the flat fares and at the cap."""
    rng = np.random.default_rng(16)
    fare = np.round((3.25 + rng.gamma(1.6, 7.0, 100_000)) * 4) / 4
    fare = np.where(rng.random(fare.size) < 0.06, 40.0, np.where(rng.random(fare.size) < 0.01, 0.0, fare))
    frame = pd.DataFrame({"fare": np.minimum(fare, 200.0), "night": rng.integers(0, 2, fare.size)})
    columns = """  fare: {kind: float, min: 0, max: 200, bins: {count: 20}, decimals: 2, missing: false}
  night: {kind: categorical, size: 2, missing: false}
"""
    return _generated(folder, frame, columns)


def _hospital(folder: Path) -> list[str]:
    """60,300 stays: charges lognormal, at another level in each department; most of them in the first of 20 bins."""
    rng = np.random.default_rng(17)
    place = rng.choice(DEPARTMENTS.size, 60_300, p=np.array([20, 22, 10, 12, 9, 10, 5, 6, 6]) / 100)
    level = np.array([8.6, 8.0, 8.2, 7.4, 9.0, 8.4, 6.6, 7.0, 8.1])[place]
    charge = np.minimum(np.round(np.exp(rng.normal(level, 1.0)), 2), 1_000_000.0)
    age = np.clip(rng.normal(50, 22, place.size).round(), 0, 110).astype(int)
    stay = np.minimum(rng.geometric(0.2, place.size), 400)
    day = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 730, place.size), unit="D")
    frame = pd.DataFrame(
        {"department": DEPARTMENTS[place], "age": age, "stay": stay, "charge": charge, "admitted": day.astype(str)}
    )
    columns = f"""  department: {{kind: categorical, values: [{", ".join(DEPARTMENTS)}], missing: false}}
  age: {{kind: integer, min: 0, max: 120, bins: {{count: 24}}, missing: false}}
  stay: {{kind: integer, min: 0, max: 999, bins: {{count: 20}}, missing: false}}
  charge: {{kind: float, min: 0, max: 1000000, bins: {{count: 20}}, decimals: 2, missing: false}}
  admitted: {{kind: date, min: 2022-01-01, max: 2023-12-31, bins: month, missing: false}}
"""
    return _generated(folder, frame, columns)


CASES: dict[str, Case] = {
    "adult": Case(_adult, ("fnlwgt", "hours-per-week", "capital-gain")),
    "taxi": Case(_taxi, ("fare",)),
    "fares": Case(_fares, ("fare",)),
    "money": Case(_money, ("amount",)),
    "hospital": Case(_hospital, ("charge", "age", "stay"), (("charge", "department"),)),
}


def measured(settings: list[str], case: Case, seed: int, fine: int, folder: Path) -> Iterator[dict[str, Any]]:
    """One run; a row of figures per column, and per grouped column."""
    own = [f"privacy.noise_seed={seed}", f"synthesis.seed={seed}", "evaluation.enabled=false"]
    config = load_config([*settings, *own, f"selection.fine_cells={fine}", "limits.threads=1"])
    done = run(config, folder / "out", quiet=True)
    real = pd.read_csv(config.data.path, usecols=[*case.columns, *(g for _, g in case.groups)])
    made = pd.read_csv(done.table)
    specs = build_specs(config)
    schema = build.build_schema(specs)
    plan = build.build_plan(specs, build.build_workload(specs, schema), schema)
    expected = [e for e in mean_errors(schema, plan, len(real)) if e["column"] in case.columns]
    predicted = {e["column"]: _predicted(e, real) for e in expected}
    for name in case.columns:
        edges = plain_edges(finest(schema[name]))
        yield {"column": name, **_figures(real[name], made[name], edges), "predicted": predicted.get(name)}
    for name, by in case.groups:
        sizes = real[by].value_counts()
        means = pd.DataFrame({"real": real.groupby(by)[name].mean(), "made": made.groupby(by)[name].mean()})
        large = means.loc[sizes.index[sizes > LARGE]]
        yield {"column": f"{name} by {by}", "worst group": float((large.made / large.real - 1).abs().max())}


def _predicted(error: dict[str, Any], real: pd.DataFrame) -> float | None:
    """In the column's unit, where the plan says it as a share of the mean; None where it says nothing."""
    share = error["mean_share"]
    return error["mean_standard_error"] if share is None else float(share * real[error["column"]].mean())


def _figures(real: pd.Series[Any], made: pd.Series[Any], edges: Any) -> dict[str, float]:
    ends = np.arange(real.min(), real.max() + 2) if edges is None else edges
    figures = {"mean": float(real.mean()), "mean error": float(made.mean() - real.mean())}
    figures["deviation error"] = float(made.std() / real.std() - 1)
    cells = [np.searchsorted(ends, [d.quantile(q) for q in (0.25, 0.5, 0.75)], side="right") for d in (real, made)]
    figures["quartile cells"] = int(np.abs(cells[0] - cells[1]).max())
    figures["tail error"] = float(made.quantile(0.99) / real.quantile(0.99) - 1)
    return figures


def main() -> None:
    """Measure what is not measured yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tables", default=",".join(CASES))
    parser.add_argument("--fine", type=int, default=256)
    asked = parser.parse_args()
    rows = [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []
    done = {(r["table"], r["seed"], r["fine"]) for r in rows}
    KEPT.parent.mkdir(exist_ok=True)
    for name in asked.tables.split(","):
        with tempfile.TemporaryDirectory(prefix="numbers-") as place:
            folder = Path(place)
            settings = CASES[name].write(folder)
            for seed in range(asked.seeds) if settings else ():
                if settings and (name, seed, asked.fine) not in done:
                    found = list(measured(settings, CASES[name], seed, asked.fine, folder))
                    shutil.rmtree(folder / "out")
                    rows += [{"table": name, "seed": seed, "fine": asked.fine, **row} for row in found]
                    with KEPT.open("a") as file:
                        file.writelines(json.dumps(row) + "\n" for row in rows[-len(found) :])
    kept = pd.DataFrame([r for r in rows if r["fine"] == asked.fine and r["table"] in asked.tables.split(",")])
    show(kept)


def show(rows: pd.DataFrame) -> None:
    """A line per column: medians over seeds of absolute errors, and in how many runs each aim was met."""
    table = Table(
        "table", "column", "seeds", "mean", "in 2 %", "2 s.e.", "met", "std. dev.", "quartiles", "met", "99 %", "met"
    )
    for (name, column), own in rows.groupby(["table", "column"], sort=False):
        if own.get("worst group", pd.Series(dtype=float)).notna().any():
            worst = own["worst group"]
            table.add_row(name, column, str(len(own)), f"{worst.median():.2%}", "", "", _met(worst <= GROUP))
            continue
        allowed = np.maximum(MEAN * own["mean"].abs(), 2 * own["predicted"].fillna(0.0).astype(float))
        off = own["mean error"].abs()
        table.add_row(
            *(str(name), str(column), str(len(own)), f"{(off / own['mean'].abs()).median():.2%}"),
            _met(off <= MEAN * own["mean"].abs()),
            *(f"{(2 * own['predicted'].astype(float) / own['mean'].abs()).median():.2%}", _met(off <= allowed)),
            *(f"{own['deviation error'].abs().median():.2%}", f"{own['quartile cells'].median():.0f} cells"),
            *(_met(own["quartile cells"] <= 1), f"{own['tail error'].abs().median():.2%}"),
            _met(own["tail error"].abs() <= TAIL),
        )
    Console(width=150).print(table)


def _met(runs: pd.Series[bool]) -> str:
    return f"{int(runs.sum())} of {len(runs)}"


if __name__ == "__main__":
    main()
