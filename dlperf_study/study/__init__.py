"""What to measure: frozen values shared by the measuring and the reading arm.

``configuration``, ``job`` and ``outcome`` need the standard library alone, because every training
process imports them; ``study``, ``cluster`` and ``plan`` validate files and need pydantic.
"""
