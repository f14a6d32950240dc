"""Where runs take place: clusters, launchers, node agents, and what starts, watches and ends processes there."""
