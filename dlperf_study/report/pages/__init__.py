"""Notebooks executed and written as pages."""
