"""What others measured and printed. One source a pair of files; the folder is the registry.

``<name>.yaml`` says who printed the numbers, where, and what holds for all of them; ``<name>.csv`` has a line per
printed number, with the text as it was printed.
"""

from dlperf_study.published.published_table import load, load_source, printed_table
from dlperf_study.published.source import PublishedSource, read_source
from dlperf_study.study.study import source_names

__all__ = ["PublishedSource", "load", "load_source", "printed_table", "read_source", "source_names"]
