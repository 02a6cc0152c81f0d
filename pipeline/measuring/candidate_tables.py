"""The synthetic table of a try, kept until it is known whether it is accepted; NOT private."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.files import whole_file
from mechanisms.public.release import Measurements
from mechanisms.public.release_files import DAMAGED
from pipeline.measuring.attempts import Attempt, Work, synthesized


def kept_table(work: Work, attempt: Attempt, measurements: Measurements) -> tuple[CodedTable, np.random.Generator]:
    """The try's table as it was scored, or will be, and the source of what is drawn when it is written.

    It is on disk before anything is asked about it: a score belongs to one table for good.

    Raises:
        UserError: it was scored, and is not there any more.
    """
    # A seed of synthesis is no secret: were it another one for each try, the table would betray the try's number.
    rng = np.random.default_rng(work.config.synthesis.seed)
    if attempt.table.exists():
        return _load_table(attempt.table, rng), rng
    if attempt.scores.exists() or any(attempt.root.glob("accept-*.json")):
        fix = "a new run, with its own budget"
        raise UserError("the table that was accepted is gone", where=str(attempt.table), fix=fix)
    synthetic = synthesized(work, measurements, rng)
    facts = {"domain": [asdict(a) for a in synthetic.domain.attributes], "rng": rng.bit_generator.state}
    arrays: dict[str, Any] = {"facts": np.array(json.dumps(facts))}
    arrays |= {f"{i:04}": column for i, column in enumerate(synthetic.columns)}
    with whole_file(attempt.table, mode=0o600) as part, part.open("wb") as file:
        np.savez(file, **arrays)
    return synthetic, rng


def _load_table(path: Path, rng: np.random.Generator) -> CodedTable:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            facts = json.loads(str(arrays["facts"]))
            domain = Domain(tuple(Attribute(**a) for a in facts["domain"]))
            rng.bit_generator.state = facts["rng"]
            return CodedTable(domain, tuple(arrays[f"{i:04}"] for i in range(len(domain))))
    except DAMAGED as error:
        fix = "a new run, with its own budget"
        raise UserError(f"the kept table is damaged ({error})", where=str(path), fix=fix) from error
