"""Things of somebody else: modules whose dictionaries add to our registries (`registries.REGISTRIES`)."""
