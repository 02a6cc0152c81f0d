"""The demo: a generated city of emergency calls, so that a first run needs no file."""

from pipeline.demo.write_city import write_demo

__all__ = ["DEMO_ROWS", "write_demo"]

#: How many rows it has where nobody says.
DEMO_ROWS = 290_000
