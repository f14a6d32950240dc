"""What to measure: frozen values shared by the measuring and the reading arm.

Every training process imports the values of a run, so they need the standard library alone; ``study``, ``plan`` and
``study_file`` are for who plans and reads, and need pydantic and PyYAML.
"""
