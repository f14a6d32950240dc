"""One file a format: files to records and diagnostics."""
