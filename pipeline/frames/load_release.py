"""`load`: a release from its folder, as the object that `fit` gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mechanisms.public.errors import UserError
from pipeline.frames.frame_files import Kinds
from pipeline.frames.frame_kinds import FORMS, kept_kinds
from pipeline.frames.keyword_settings import overrides_of
from pipeline.frames.release_object import Release
from pipeline.release_folder import read_release
from pipeline.settings.compose import compose_config
from pipeline.settings.config import SynthConfig, SynthesisConfig, typed
from pipeline.settings.methods import usable_synthesizer

#: Settings of `synth` that are arguments of `sample`.
OF_SAMPLE = {"where": "where=…", "rows": "rows", "synthesis.rows": "rows", "seed": "seed=…", "synthesis.seed": "seed=…"}


def load(path: Path | str, **settings: Any) -> Release:
    """A release from its folder, or from the folder of its run; every file is checked against the manifest.

    Args:
        path: RUN/release, or RUN.
        settings: how `sample` makes rows, as for `synth`: synthesis="pgm", **{"synthesis.max_cells": 10_000}.
    Raises:
        UserError: no path; no release there; a file was edited, is missing or is foreign.
    """
    if not isinstance(path, str | Path):
        raise UserError(f"{path!r} is no path", where="path", fix="the folder of a run, or its release")
    folder = Path(path).expanduser()
    inner = folder / "release"
    sample = {name: f"sample({argument})" for name, argument in OF_SAMPLE.items()}
    own = {"synthesis": "auto", **settings}
    config = typed(
        compose_config("synth", overrides_of(own, {"from": "path", "output": "save", **sample})), SynthConfig
    )
    usable_synthesizer(config.synthesis)
    release = inner if (inner / "measurements").is_dir() else folder
    return read(release, config.synthesis)


def read(folder: Path, synthesis: SynthesisConfig, kinds: Kinds | None = None, form: str = FORMS[0]) -> Release:
    """The release of a folder with all its files.

    Args:
        kinds: of the columns of the frame that it was made from; None: those that are kept beside it, or of the schema.
        form: of the frames that `sample` gives, where the kinds are given.
    """
    schema, statement, measurements = read_release(folder)
    if kinds is None:
        kinds, form = kept_kinds(folder)
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    return Release(schema, measurements, statement, files, kinds, synthesis, form)
