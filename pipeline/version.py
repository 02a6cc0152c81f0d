"""The version of the pipeline, in one place: what a release says it was made by, and what advisories go by."""

VERSION = "0.2.0"
