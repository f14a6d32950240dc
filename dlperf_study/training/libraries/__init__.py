"""The libraries that train, each as one object with the same methods: see ``Library`` in ``_base.py``."""
