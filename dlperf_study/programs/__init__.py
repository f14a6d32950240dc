"""A user's own program: its command, the copy of its files, and what is inferred of its settings."""
