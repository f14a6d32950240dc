"""Evidence: the fuzzer's bytes choose damages of a small study, which is then collected."""

from pathlib import Path

import atheris

with atheris.instrument_imports(include=["dlperf_study.records", "dlperf_study.dataset", "dlperf_study.study"]):
    from tests.records.damages import DamagedStudy

from tests.fuzzing.fuzzer import fuzz_in_folder

#: So many damages at once, at most.
MOST_DAMAGES = 3


class Target:
    """Collects the study with the damages that an input chooses."""

    def __init__(self, folder: Path) -> None:
        self._study = DamagedStudy(folder)

    def __call__(self, data: bytes) -> None:
        choice = atheris.FuzzedDataProvider(data)
        damages = []
        for _ in range(choice.ConsumeIntInRange(1, MOST_DAMAGES)):
            damages.append(self._study.damages[choice.ConsumeIntInRange(0, len(self._study.damages) - 1)])
        try:
            self._study.messages(damages)
        except Exception:
            # The input that is kept says it in numbers alone.
            print("the damages:", *damages, sep="\n", flush=True)
            raise


if __name__ == "__main__":
    fuzz_in_folder(Target, {})
