"""Metrics of runs with their confidence intervals, one file per family."""
