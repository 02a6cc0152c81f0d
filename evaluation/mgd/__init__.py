"""MGD and AEMC: earth mover costs between marginals (Li et al. 2021a)."""
