"""`verify`: whether a release is sound, line by line."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from pipeline.settings.config import VerifyConfig
from pipeline.statement.verify import verify


def show_verdict(release: Path, config: VerifyConfig) -> int:
    """Print the verdict; its exit code."""
    verdict = verify(release, key=config.key)
    facts = {"release": str(release), "sound": verdict.sound, "exit_code": verdict.exit_code, **asdict(verdict)}
    print(json.dumps(facts, ensure_ascii=False) if config.format == "json" else verdict.as_text())
    return verdict.exit_code
