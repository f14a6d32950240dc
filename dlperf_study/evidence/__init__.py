"""What a run leaves: its run record and one log per rank, written and read here."""
