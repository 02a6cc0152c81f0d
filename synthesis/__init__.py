"""Post-processing of noisy answers into synthetic rows; imports mechanisms.public only."""

__distribution__ = "dp-synthesis-pipeline"
