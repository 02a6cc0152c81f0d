"""`verify`: whether a release is sound, line by line."""

from __future__ import annotations

from pathlib import Path

from pipeline.statement.verify import verify


def show_verdict(release: Path, key: str | None) -> int:
    """Print the verdict; its exit code."""
    verdict = verify(release, key=key)
    print(verdict.as_text())
    return verdict.exit_code
