"""On each node of a run: one guard that starts, watches and ends its processes; on one of them the coordinator."""
