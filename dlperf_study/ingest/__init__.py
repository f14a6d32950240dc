"""From logs of other programs to the tables of a study: log identification, reading, and the checks of runs."""
