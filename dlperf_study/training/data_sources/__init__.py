"""Where the samples of a training come from: one file a data source, and its name is its name in the YAML."""

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.registry import Registry
from dlperf_study.training.data_sources._base import DataSource

_DATA_SOURCES = Registry[DataSource](__name__, "DATA_SOURCE", "data source", StudyFileError)
names, load = _DATA_SOURCES.names, _DATA_SOURCES.load
