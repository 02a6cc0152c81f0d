"""The only package that knows Hydra, files and the order of things.

From Python:

    from pipeline import load_config, mgd, run, score, synthesize
    done = run(load_config(["data=adult", "data.path=adult.csv.gz", "privacy.epsilon=1"]), "outputs/mine")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pipeline.version import __version__

if TYPE_CHECKING:
    from pipeline.api import Run, aemc, bounds, deep_dive, estimate, load_config, mgd, query, run, score, synthesize

__distribution__ = "dp-synthesis-pipeline"
#: What `pipeline.api` holds.
FUNCTIONS = ["Run", "aemc", "bounds", "deep_dive", "estimate", "load_config"]
FUNCTIONS += ["mgd", "query", "run", "score", "synthesize"]
__all__ = ["Run", "__version__", "aemc", "bounds", "deep_dive", "estimate", "load_config"]
__all__ += ["mgd", "query", "run", "score", "synthesize"]


def __getattr__(name: str) -> Any:
    """The functions of `pipeline.api`, loaded at first use: the command line answers a mistake without them."""
    if name in FUNCTIONS:
        return getattr(import_module("pipeline.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *FUNCTIONS})
