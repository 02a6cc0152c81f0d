"""Things of somebody else: modules that offer a selection, metric, synthesizer, noise or accountant beside ours."""
