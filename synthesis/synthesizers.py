"""The synthesizers by name: the only list of them."""

from __future__ import annotations

from mechanisms.public.members import Members
from synthesis.auto_model import AutoSpec
from synthesis.contract import Synthesizer
from synthesis.gum.gum_settings import GumSpec
from synthesis.independent import IndependentSpec
from synthesis.pgm.pgm_settings import PgmSpec

#: A contract test runs over all of them.
SYNTHESIZERS: Members[type[Synthesizer]] = Members(
    "synthesis",
    {
        "auto": AutoSpec,
        "gum": GumSpec,
        "pgm": PgmSpec,
        "maxent": "synthesis.papers.maxent:MaxentSpec",
        "mcf": "synthesis.papers.mcf:McfSpec",
        "independent": IndependentSpec,
        "mbi": "synthesis.papers.mbi_extra:MbiSpec",
    },
)
