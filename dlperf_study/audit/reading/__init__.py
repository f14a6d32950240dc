"""Readers of results tables: from a file to rows with our column names."""
