"""Study files and cluster files, which people write. The fuzzer starts from those of this project."""

from pathlib import Path

import atheris

with atheris.instrument_imports(include=["dlperf_study.study", "dlperf_study.machines.cluster"]):
    from dlperf_study.core.errors import DlperfStudyError
    from dlperf_study.core.resources import PARAMS
    from dlperf_study.execution.planning import load_cluster
    from dlperf_study.study.study_file import load_study

from tests.fuzzing.fuzzer import fuzz_in_folder

#: A study is named by its file, and another name than these is refused before the content is read.
READERS = {"studies": load_study, "clusters": load_cluster}


class Target:
    """Reads one input as a study or a cluster, by its first byte."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "fuzzed.yaml"

    def __call__(self, data: bytes) -> None:
        read = list(READERS.values())[data[0] % len(READERS) if data else 0]
        self._file.write_bytes(data[1:])
        try:
            read(self._file)
        except DlperfStudyError as error:
            if self._file.name not in str(error):
                raise RuntimeError("the message does not name the file") from error


def seeds() -> dict[str, bytes]:
    """Return the files of this project, each after the byte that selects its reader."""
    contents = {}
    for number, folder in enumerate(READERS):
        for file in (PARAMS / folder).glob("*.yaml"):
            contents[file.name] = bytes([number]) + file.read_bytes()
    return contents


if __name__ == "__main__":
    fuzz_in_folder(Target, seeds())
