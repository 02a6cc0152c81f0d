"""`experiment=mgd_table1`: its scores, its report and its figure."""
