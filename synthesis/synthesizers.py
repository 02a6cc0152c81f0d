"""The synthesizers by name: the only list of them."""

from __future__ import annotations

from synthesis.auto_model import AutoSpec
from synthesis.contract import Synthesizer
from synthesis.gum.gum_settings import GumSpec
from synthesis.independent import IndependentSpec
from synthesis.papers.maxent import MaxentSpec
from synthesis.papers.mbi_extra import MbiSpec
from synthesis.papers.mcf import McfSpec
from synthesis.pgm.pgm_settings import PgmSpec

#: A contract test runs over all of them.
SYNTHESIZERS: dict[str, type[Synthesizer]] = {
    "auto": AutoSpec,
    "gum": GumSpec,
    "pgm": PgmSpec,
    "maxent": MaxentSpec,
    "mcf": McfSpec,
    "independent": IndependentSpec,
    "mbi": MbiSpec,
}
