"""What every driver shares: its request, tables of codes, the zCDP budget, one JSON line. Needs numpy alone."""

from __future__ import annotations

import csv
import importlib.metadata
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Request:
    """What the harness asks for: `files` by role (real, synthetic, holdout, domain, output), and the promise."""

    method: str
    epsilon: float
    delta: float
    files: dict[str, str]

    @property
    def domain(self) -> dict[str, int]:
        """Column → number of codes, in the order of the table."""
        return dict(json.loads(Path(self.files["domain"]).read_text(encoding="utf-8")))


def request() -> Request:
    """The request whose file is the only argument."""
    return Request(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))


def read_codes(path: str) -> dict[str, np.ndarray]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        header = next(csv.reader(file))
        codes = np.loadtxt(file, delimiter=",", dtype=np.int64, ndmin=2)
    return {name: codes[:, i] for i, name in enumerate(header)}


def write_codes(path: str, columns: dict[str, Any]) -> None:
    names = list(columns)
    codes = np.column_stack([np.asarray(columns[n]).astype(np.int64) for n in names])
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(names)
        np.savetxt(file, codes, fmt="%d", delimiter=",")


def delta_of(rho: float, epsilon: float) -> float:
    """The δ at which ρ-zCDP gives (ε, δ): the bound of Canonne, Kamath and Steinke 2020 (Proposition 12)."""
    if rho <= 0:
        return 0.0
    alpha = 1 + np.geomspace(1e-3, 1e5, 40_001)
    exponent = (alpha - 1) * (alpha * rho - epsilon) + alpha * np.log1p(-1 / alpha) - np.log(alpha - 1)
    return float(math.exp(min(0.0, float(exponent.min()))))


def zcdp(epsilon: float, delta: float) -> float:
    """The largest ρ whose δ at ε is at most `delta`, from below."""
    low, high = 0.0, epsilon + 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    return low


def said(*packages: str, note: str = "", **facts: Any) -> None:
    """The driver's answer, as the last line of its output: versions, a remark, values."""
    versions = {p: importlib.metadata.version(p) for p in packages}
    print(json.dumps({"versions": versions, "note": note, **facts}), flush=True)
