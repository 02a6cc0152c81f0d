"""Settings → a synthesizer."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from mechanisms.public.errors import UserError, did_you_mean, one_of
from mechanisms.public.extras import need_extra
from pipeline.settings.config import SynthesisConfig
from pipeline.settings.ways_out import OF_ONE
from synthesis.contract import Synthesizer
from synthesis.synthesizers import SYNTHESIZERS

#: Types of a synthesizer's settings: what fits, and how to say so.
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "str": ((str,), "a word"),
}


def build_synthesizer(config: SynthesisConfig) -> Synthesizer:
    """The synthesizer and its settings."""
    kind = SYNTHESIZERS[one_of(config.kind, SYNTHESIZERS, "synthesis.kind")]
    setting_types = {f.name: f.type for f in dataclasses.fields(kind)}
    for name, value in config.options.items():
        if name not in setting_types:
            raise _no_setting(config.kind, name, setting_types)
        fits, fix = _KINDS[str(setting_types[name])]
        if isinstance(value, bool) or not isinstance(value, fits):
            raise UserError(f"got {value!r}", where=f"synthesis.{name}", fix=fix)
    if config.rows is not None and config.rows < 0:
        raise UserError(f"got {config.rows}", where="synthesis.rows", fix="a whole number of at least 0, or null")
    if config.seed is not None and config.seed < 0:
        raise UserError(f"got {config.seed}", where="synthesis.seed", fix="a whole number of at least 0, or null")
    return kind(**config.options)


def _no_setting(kind: str, name: str, names: Collection[str]) -> UserError:
    """The synthesizer has no such setting; synthesis.kind alone takes one with the settings of another."""
    own = f"synthesis={kind}, which brings its own: {', '.join(names) or 'none'}"
    said = "no such setting", did_you_mean(name, names) or own
    what, fix = OF_ONE.get(f"synthesis.{name}", said)
    return UserError(what, where=f"synthesis.{name}", fix=fix)


def usable_synthesizer(config: SynthesisConfig, spec: Synthesizer | None = None) -> Synthesizer:
    """The same, where rows are to be made: an optional library that it needs is there before anything is spent.

    Args:
        spec: where it is built already.
    """
    spec = spec or build_synthesizer(config)
    if spec.library:
        need_extra(spec.library, f"synthesis={config.kind}")
    return spec
