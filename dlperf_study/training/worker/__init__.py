"""Inside each training process: the timed windows and the rank log."""
