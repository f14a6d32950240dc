"""From the evidence of a study to its tables, and the diagnostics of its runs."""
