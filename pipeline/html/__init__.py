"""The report: one HTML file that needs no network and no script."""
