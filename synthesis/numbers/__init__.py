"""Numbers and dates: from fine answers to the values inside bins."""
