"""Graphical models fitted to noisy linear answers: junction trees, exact inference, estimation, sampling."""
