"""Where runs take place: clusters, launchers, guards, and what starts, watches and ends processes there."""
