"""GUM, the Gradually Update Method (Li et al. 2021b, Appendix A; Zhang et al. 2021)."""
