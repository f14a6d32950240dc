"""From logs of other programs to the tables of a study: whose they are, what they say, which runs may be counted."""
