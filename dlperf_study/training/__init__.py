"""What trains: frameworks, models, data loaders, image datasets, and the worker that times their steps."""
