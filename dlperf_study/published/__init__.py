"""Numbers that others measured and printed. A source is a pair of files; their folder is the registry.

``<name>.yaml`` has the authors, the address and the facts of all numbers; ``<name>.csv`` has a line per printed
number, with its text as printed.
"""

from dlperf_study.published.published_table import load, load_source, printed_table
from dlperf_study.published.source import PublishedSource, read_source
from dlperf_study.study.study import source_names

__all__ = ["PublishedSource", "load", "load_source", "printed_table", "read_source", "source_names"]
