"""The only package that knows Hydra, files and the order of things.

From Python:

    from pipeline import load_config, mgd, run, score, synthesize
    done = run(load_config(["data=adult", "data.path=adult.csv.gz", "privacy.epsilon=1"]), "outputs/mine")
"""

from pipeline.api import Run, aemc, deep_dive, load_config, mgd, query, run, score, synthesize

__all__ = ["Run", "aemc", "deep_dive", "load_config", "mgd", "query", "run", "score", "synthesize"]
