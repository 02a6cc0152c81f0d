"""`experiment=dpsyn_figure2`: the noise's standard deviation by composition method over k (Li et al. 2021b)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from mechanisms.accounting.budget import Budget
from mechanisms.public.files import JsonDict, write_whole
from mechanisms.public.units import Neighbouring
from pipeline.budget.admission import PlannedRelease
from pipeline.experiments.experiment_settings import save, write_rows
from pipeline.experiments.gallery.published import Beside, as_json, shared_equally
from pipeline.folders import claimed
from pipeline.load_stage import keep_settings
from pipeline.run_log import logged
from pipeline.settings.config import Config

SOURCE = "Li et al. 2021b (DPSyn), Figure 2 and section 2.5"
#: Panel → ε, δ and the crossing that the paper prints.
PANELS = {"A": (0.01, 1e-8, 18), "B": (0.01, 1e-12, 28), "C": (1.0, 1e-8, 19), "D": (1.0, 1e-12, 28)}
#: Curve → mechanism and accountant. The last one is not in the paper.
METHODS = {
    "lap_basic": ("laplace", "basic"),
    "lap_adv": ("laplace", "advanced"),
    "lap_zcdp": ("laplace", "zcdp"),
    "gauss_basic": ("gaussian", "basic"),
    "gauss_zcdp": ("gaussian", "zcdp"),
    "gauss_gdp (ours)": ("gaussian", "gdp"),
}
#: What lies in the folder beside the files of the run, in the place of NOT_PRIVATE.txt.
PUBLIC = """No table was read here: figure2.csv, figure2.png, figure2.svg and experiment.json follow from epsilon, delta
and the number of marginals alone. They may be published. The log and the settings may name folders of this machine.
"""
#: Numbers of marginals; the small version takes the last list.
KS = (1, 2, 3, 5, 7, 10, 14, 18, 19, 24, 28, 29, 35, 40, 50, 60, 70, 80, 90, 100)
SMOKE_KS = (1, 2, 5, 10, 18, 19, 27, 28, 29, 40)  # both sides of each crossing, so that it is drawn where it is


#: Curve → number of marginals → the standard deviation of one cell's noise.
Curves = dict[str, dict[int, float]]


def crossing(curves: Curves) -> float:
    """The k, as a real number, where lap_basic and gauss_zcdp have equal noise.

    One grows with k, the other with √k, so that any k tells it: k · (gauss / lap)².
    """
    k = max(curves["lap_basic"])
    return k * (curves["gauss_zcdp"][k] / curves["lap_basic"][k]) ** 2


def panel(name: str, ks: tuple[int, ...]) -> Curves:
    """The curves of one panel of the figure."""
    epsilon, delta, _ = PANELS[name]
    curves = {}
    for curve, (mechanism, accountant) in METHODS.items():
        budget = Budget(epsilon, delta, accountant, Neighbouring.ADD_REMOVE, max_records=1)
        curves[curve] = {k: shared_equally(budget, k, mechanism).stddev for k in ks}
    return curves


def releases(config: Config, root: Path) -> tuple[PlannedRelease, ...]:
    """None: no table is read."""
    return ()


def run_and_tell(config: Config, root: Path, hydra_files: Mapping[str, str]) -> str:
    """Compute the four panels, write the table and the figure; no data is read, so that all of it may be published."""
    ks = SMOKE_KS if config.smoke else KS
    with claimed(root, resume=config.resume, public=PUBLIC) as folder, logged(folder.log):
        keep_settings(folder, config, hydra_files)
        panels = {name: panel(name, ks) for name in PANELS}
        _write(panels, folder.internal)
    lines = ["panel      ε      δ  crossing: source says   we get   rounded"]
    for name, curves in panels.items():
        (epsilon, delta, printed), crossed = PANELS[name], crossing(curves)
        lines.append(f"{name}     {epsilon:6g} {delta:6g} {printed:>22} {crossed:>8.2f} {round(crossed):>9}")
    return "\n".join(["", *lines, "", f"no table was read: {root / 'internal' / 'figure2.png'} may be published"])


def _write(panels: Mapping[str, Curves], inside: Path) -> None:
    listed = [(n, curve, values) for n, curves in panels.items() for curve, values in curves.items()]
    rows = [[n, *PANELS[n][:2], curve, k, v] for n, curve, values in listed for k, v in values.items()]
    write_rows(inside / "figure2.csv", ("panel", "epsilon", "delta", "method", "k", "stddev"), rows)
    facts: JsonDict = {"format": "experiment/1", "experiment": "dpsyn_figure2", "source": SOURCE}
    facts["beside"] = as_json(
        Beside(f"crossing in panel {n}", crossing(p), PANELS[n][2], f"Figure 2 ({n})") for n, p in panels.items()
    )
    facts["crossings"] = {n: {"source_says": PANELS[n][2], "we_get": crossing(p)} for n, p in panels.items()}
    write_whole(inside / "experiment.json", json.dumps(facts, indent=1))
    _draw(panels, inside)


def _draw(panels: Mapping[str, Curves], inside: Path) -> None:
    with matplotlib.rc_context({"svg.hashsalt": "figure2", "font.size": 9}):
        figure = Figure(figsize=(11, 7.5), layout="constrained")
        for i, (name, curves) in enumerate(panels.items()):
            (epsilon, delta, printed), crossed = PANELS[name], crossing(curves)
            axes = figure.add_subplot(2, 2, i + 1)
            for curve, values in curves.items():
                style = "--" if "ours" in curve else "-"
                axes.plot([*values], [*values.values()], style, marker=".", markersize=3, linewidth=1.2, label=curve)
            axes.axvline(crossed, color="#999999", linestyle=":")
            axes.set_yscale("log")
            axes.minorticks_off()
            axes.set_xlabel("k, the number of marginals")
            axes.set_ylabel("standard deviation of a cell's noise (log)")
            title = f"({name}) ε = {epsilon:g}, δ = {delta:g}: crossing {crossed:.2f} (the paper: {printed})"
            axes.set_title(title, fontsize=9)
            axes.grid(alpha=0.3)
        drawn = figure.axes[0].get_lines()[: len(METHODS)]  # without the line of the crossing
        figure.legend(handles=drawn, loc="outside upper center", ncols=6, frameon=False)
        save(figure, inside, "figure2")
