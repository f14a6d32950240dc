"""Processes that must not outlive whoever started them: how they are marked, found and ended."""
