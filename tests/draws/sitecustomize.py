"""Loaded by every process of a search for tests that draw (`tests.flaky`): notes that noise or a key was drawn."""

import os
import sys

#: Modules of the pipeline that ask the system's source for chance which may change an outcome.
DRAWING = {"mechanisms.sensitive.noise", "pipeline.stages", "tests.conftest"}


def _noting(draw):  # type: ignore[no-untyped-def]
    def drawn(size):  # type: ignore[no-untyped-def]
        if (place := os.environ.get("FLAKY_DRAWN")) and sys._getframe(1).f_globals.get("__name__") in DRAWING:
            with open(place, "ab") as file:  # noqa: PTH123 - pathlib is not loaded for this
                file.write(b".")
        return draw(size)

    return drawn


if "FLAKY_DRAWN" in os.environ:
    import secrets  # it binds the source by its own name before the source is replaced

    os.urandom, secrets.token_bytes = _noting(os.urandom), _noting(secrets.token_bytes)
