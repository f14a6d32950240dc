"""Records to answers: evidence becomes tables, and every number gets its interval and its diagnostics."""
