"""The demo: a generated city of emergency calls, so that a first run needs no file."""

from pipeline.demo.facts import demo_schema
from pipeline.demo.write_city import write_demo

__all__ = ["demo_schema", "write_demo"]
