"""On each node of a run: one node agent that starts, watches and ends its processes; on one of them the coordinator."""
