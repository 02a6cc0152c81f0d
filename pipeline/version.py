"""The version of the whole: releases name it, and advisories are looked up by it."""

__version__ = "0.3.0"
