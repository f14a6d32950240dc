"""Third-party logs: their runs, lines and diagnostics, by declared formats."""
