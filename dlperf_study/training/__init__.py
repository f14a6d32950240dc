"""What trains: frameworks, models, data sources, image sets, and the worker that times their steps."""
