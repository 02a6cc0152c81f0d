"""Post-processing of noisy answers into synthetic rows; imports mechanisms.public only."""
