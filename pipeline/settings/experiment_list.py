"""The experiments that can be asked for, each with the line that its file says about itself."""

from __future__ import annotations

from pipeline.conf_folder import CONF


def described() -> str:
    """All experiments, each with the line that its file says about itself."""
    lines = []
    for path in sorted((CONF / "experiment").glob("*.yaml")):
        comments = [x[1:].strip() for x in path.read_text(encoding="utf-8").splitlines() if x.startswith("#")]
        about = next((c for c in comments if not c.startswith(("@package", "python -m"))), "")
        lines.append(f"    {path.stem}: {about}")
    return "\n".join(lines)
