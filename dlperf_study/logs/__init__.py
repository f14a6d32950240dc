"""Foreign logs: which run each is of, and its lines as records and diagnostics, by declared formats."""
