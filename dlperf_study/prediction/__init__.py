"""Predicted throughput at other sizes, with tested intervals."""
