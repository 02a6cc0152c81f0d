"""One design for every HTML page: the templates, the parts that they share, and the charts."""
