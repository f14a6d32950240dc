"""From a configuration to evidence: the papermill call, supervision, resume."""
