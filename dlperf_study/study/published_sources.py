"""Which published results there are, by name. Standard library only, so that a study file can be checked anywhere."""

from dlperf_study.paths import PROJECT

SOURCES_FOLDER = PROJECT / "dlperf_study" / "published" / "sources"


def source_names() -> tuple[str, ...]:
    """Return the names of the published sources: each is a pair of files, ``<name>.yaml`` and ``<name>.csv``."""
    return tuple(sorted(file.stem for file in SOURCES_FOLDER.glob("*.yaml")))
