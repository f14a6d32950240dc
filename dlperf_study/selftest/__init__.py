"""The instrument tested with known answers: what its studies found, against what is true."""
