"""Fuzzers of everything that reads files: whatever these hold, they are read or refused in one message.

They are not among the tests, which must have the same result every time. `make fuzz MINUTES=20` runs all of them.
"""
