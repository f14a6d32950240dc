"""Simulations of studies, through the functions that make their CIs and significance tests.

Each test has a few cases of a few studies. ``SIMULATED=400 python -m pytest tests/simulations -rP`` has all cases, of
400 studies each, and prints the tables that docs/statistics.md summarises.
"""
