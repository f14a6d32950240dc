"""Where runs take place: the cluster file, what this machine has, what its Pythons have installed."""
