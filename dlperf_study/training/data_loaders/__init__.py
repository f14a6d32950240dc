"""Where the samples of a training come from: one file a data loader, and its name is its name in the YAML."""

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.registry import Registry
from dlperf_study.training.data_loaders._base import DataLoader

_DATA_LOADERS = Registry[DataLoader](__name__, "DATA_LOADER", "data loader", StudyFileError)
names, load = _DATA_LOADERS.names, _DATA_LOADERS.load
