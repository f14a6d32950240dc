"""Try everything a run on a cluster needs, before the first one."""
