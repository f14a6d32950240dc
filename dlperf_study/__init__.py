"""Measure how distributed deep-learning training scales, and say how certain the answer is."""

__version__ = "0.1.0"
