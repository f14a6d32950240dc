"""The evidence of a run: its run record and one log per rank, written and read here."""
