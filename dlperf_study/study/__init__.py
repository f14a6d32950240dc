"""What to measure: frozen values shared by the measuring and the reading arm.

Every training process imports the values, so they need the standard library alone; ``study_file`` and
``cluster_file`` read and check YAML, and need pydantic and PyYAML.
"""
