"""Measurements of one study at different dates, or of two studies, and what changed between them."""
