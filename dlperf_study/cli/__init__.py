"""The commands of the command line, one file a group: from the options of a command to its exit code."""
