"""Settings of all tests: no deadlines, since a first call may compile."""

from hypothesis import settings

settings.register_profile("pipeline", deadline=None)
settings.load_profile("pipeline")
