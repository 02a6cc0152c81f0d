"""The only package that knows Hydra, files and the order of things.

From Python:

    import pipeline
    release = pipeline.fit(frame, "my.yaml", epsilon=1)
    frame = release.sample(1000)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pipeline.version import __version__

if TYPE_CHECKING:
    from pipeline.api import *

__distribution__ = "dp-synthesis-pipeline"
#: The version; all else `pipeline.api` holds.
__all__ = [
    "CommandResult",
    "Comparison",
    "Release",
    "Run",
    "__version__",
    "aemc",
    "bounds",
    "check",
    "draft",
    "estimate",
    "fit",
    "itemsets",
    "load",
    "load_config",
    "plan",
    "query",
    "rehearse",
    "run",
    "score",
    "synthesize",
]


def __getattr__(name: str) -> Any:
    """The functions of `pipeline.api`, loaded at first use: the command line answers a mistake without them."""
    if name in __all__:
        return getattr(import_module("pipeline.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
