"""The import contracts can fail: an import planted against each of them is found."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).parents[1]

#: A word of a contract's name → the module that breaks it, and its import.
PLANTED = {
    "one-way doors": ("mechanisms/public/domain.py", "from mechanisms.sensitive import exit"),
    "nothing but the public words": ("synthesis/contract.py", "from mechanisms.accounting import ledger"),
    "second opinion": ("pipeline/folders.py", "import autodp"),
    "knows Hydra": ("evaluation/counts.py", "import hydra"),
    "without its papers": ("evaluation/score.py", "from evaluation.papers import anita"),
}


def test_each_import_contract_is_broken_by_an_import_against_it(tmp_path):
    for room in ("mechanisms", "synthesis", "evaluation", "pipeline"):
        shutil.copytree(HOME / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    settings = (HOME / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
    for name, line in PLANTED.values():
        path = tmp_path / name
        path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "200"}
    lint = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    verdicts = [line.rstrip() for line in lint.stdout.splitlines() if line.rstrip().endswith((" KEPT", " BROKEN"))]
    assert len(verdicts) == settings.count("[[tool.importlinter.contracts]]") == len(PLANTED)
    for word in PLANTED:
        assert [line for line in verdicts if word in line and line.endswith("BROKEN")], lint.stdout
