"""Formulas over runs: throughput, communication, scaling and comparison, each with its interval."""
