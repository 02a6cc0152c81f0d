"""The demo city's table as a file, to try commands on: python -m pipeline.demo FILE [ROWS [SEED]]."""

from __future__ import annotations

import sys
from pathlib import Path

from mechanisms.public.errors import UserError
from pipeline.demo import DEMO_ROWS, write_demo

USAGE = "python -m pipeline.demo FILE.csv [ROWS [SEED]]: the calls of a run with data.rows=ROWS data.seed=SEED"


def main(arguments: list[str]) -> int:
    """Write the table; returns the exit code."""
    numbers = [a for a in arguments[1:] if a.isdecimal()]
    if not 1 <= len(arguments) <= 3 or len(numbers) < len(arguments) - 1 or arguments[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        return 1
    rows, seed = [*map(int, numbers), *(DEMO_ROWS, 0)[len(numbers) :]]
    try:
        if Path(arguments[0]).exists():
            raise UserError("it is there already", where=arguments[0], fix="another name, or take it away first")
        write_demo(Path(arguments[0]), rows=rows, seed=seed)
    except (UserError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
