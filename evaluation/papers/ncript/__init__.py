"""N-CRiPT: five losses of temporal maps (N-CRiPT 2021)."""
