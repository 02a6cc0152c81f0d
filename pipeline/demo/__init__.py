"""The demo: a generated city of emergency calls, so that a first run needs no file."""

from pipeline.demo.write_city import write_demo

__all__ = ["write_demo"]
