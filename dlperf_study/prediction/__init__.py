"""What a number of nodes or devices gives that nobody has measured, how certain that is, and how that was tested."""
