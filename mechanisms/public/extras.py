"""Libraries that only some need: optional extras of the package, asked for before any work starts."""

from __future__ import annotations

from importlib.util import find_spec

from mechanisms.public.errors import UserError

#: Library → the extra of this package that brings it.
EXTRAS = {
    "matplotlib": "plots",
    "sklearn": "ml",
    "mbi": "mbi",
    "pyspark": "spark",
    "sqlglot": "sql",
    "polars": "polars",
    "adbc_driver_postgresql": "postgresql",
}


def absent_extra(library: str) -> str:
    """What brings an optional library, in one line; empty where it is installed.

    Args:
        library: a key of EXTRAS, or empty for none.
    """
    if not library or find_spec(library) is not None:
        return ""
    return f"needs the library {library}: {_cure(library)}"


def _cure(library: str) -> str:
    """The library itself: an index may not have this package."""
    name = {"sklearn": "scikit-learn threadpoolctl"}.get(library, library.replace("_", "-"))
    return f"pip install {name} (the extra `{EXTRAS[library]}` of this package)"


def need_extra(library: str, where: str) -> None:
    """The optional library is installed.

    Args:
        library: a key of EXTRAS.
        where: the setting or the command that needs it.
    Raises:
        UserError: it is not; names the extra that brings it.
    """
    if find_spec(library) is None:
        raise UserError(f"this needs the library {library}, which is not installed", where=where, fix=_cure(library))
