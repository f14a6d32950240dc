"""The self-test: measurements with known answers."""
