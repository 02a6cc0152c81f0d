"""What may touch people, and what it costs: public words, accounting, and the sensitive room."""

__distribution__ = "dp-synthesis-pipeline"
