"""Every damage of the evidence of a study: of each value, each file, and the name of each run's folder."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import collect
from tests.evidence_factory import Planned, Recipe, configuration, write_study
from tests.telemetry_factory import gpu, sample, with_telemetry

Keys = tuple[str | int, ...]

#: What replaces a value, as JSON or as what is no JSON: every type, and what a type of a table can't hold.
VALUES = (
    *("null", "true", "[]", "{}", "[[]]", '"text"', '""', '"1"'),
    *("0", "-1", "2", "0.5", "-0.5", "1e308", "1e999", "NaN", "-Infinity"),
    *("9" * 19, "9" * 400, f"{'9' * 400}.5", "9" * 5000),
    *('"\\ud800"', '"\\u0000"', '{"\\udfff": 1}', "[1e999]", "[NaN]", '["text"]', "[null]", "[true]", f"[{'9' * 400}]"),
)
#: In place of the text of a file.
TEXTS = (b"", b"\x00", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 10_000, b'{"format": 2}', b"\xef\xbb\xbf{}")
#: In place of the name of a run's folder.
FOLDER_NAMES = ("²", "٣", "0", "01", "-1", "1.5", "2", "9" * 30, "x" * 200, "a b", os.fsdecode(b"\xff"))
_MARK = "value that is damaged"


@dataclass(frozen=True)
class NewValue:
    """Another value at ``keys`` in a line of a file (-1: the file is one value); with an empty ``value`` none."""

    file: Path
    line: int
    keys: Keys
    value: str

    def __str__(self) -> str:
        keys = ".".join(map(str, self.keys))
        return f"{self.file}: line {self.line}: {keys} is {self.value[:40] or 'missing'}"

    def apply(self, folder: Path) -> None:
        """Do it to the evidence in a folder."""
        path = folder / self.file
        lines = [path.read_text()] if self.line < 0 else path.read_text().splitlines()
        content = json.loads(lines[self.line])
        parent = content
        for key in self.keys[:-1]:
            parent = parent[key]
        if self.value:
            parent[self.keys[-1]] = _MARK
        else:
            del parent[self.keys[-1]]
        lines[self.line] = json.dumps(content).replace(f'"{_MARK}"', self.value)
        path.write_text("\n".join(lines) + "\n")


@dataclass(frozen=True)
class NewText:
    """Other bytes in place of a file; None: nothing, it is removed."""

    file: Path
    text: bytes | None

    def __str__(self) -> str:
        return f"{self.file}: is {self.text!r:.40}"

    def apply(self, folder: Path) -> None:
        """Do it to the evidence in a folder."""
        (folder / self.file).unlink()
        if self.text is not None:
            (folder / self.file).write_bytes(self.text)


@dataclass(frozen=True)
class NewName:
    """Another name of a file or folder."""

    file: Path
    name: str

    def __str__(self) -> str:
        return f"{self.file}: is named {self.name!r:.40}"

    def apply(self, folder: Path) -> None:
        """Do it to the evidence in a folder."""
        target = (folder / self.file).with_name(self.name)
        if not target.exists():
            (folder / self.file).rename(target)


Damage = NewValue | NewText | NewName


def damages(folder: Path) -> Iterator[Damage]:
    """Yield every damage of the evidence in a folder: of each value, each file, and the name of each run's folder."""
    for path in sorted(folder.rglob("*.json*")):
        file, text = path.relative_to(folder), path.read_text()
        lines = [text] if path.suffix == ".json" else text.splitlines()
        for line_number, line in enumerate(lines):
            for keys in _keys_of(json.loads(line)):
                for value in ("", *VALUES):
                    yield NewValue(file, line_number if path.suffix == ".jsonl" else -1, keys, value)
        half = text[: len(text) // 2].encode()
        for damaged_text in (None, half, text.encode() * 2, *TEXTS):
            yield NewText(file, damaged_text)
    for path in sorted(folder.rglob("runs/*")):
        for name in FOLDER_NAMES:
            yield NewName(path.relative_to(folder), name)


def _keys_of(content: Any) -> Iterator[Keys]:
    """Yield the keys of every value in JSON; of a list the first alone, for the others are alike."""
    entries = list(content.items()) if isinstance(content, dict) else list(enumerate(content[:1]))
    for key, value in entries:
        yield (key,)
        if isinstance(value, dict | list):
            for further_keys in _keys_of(value):
                yield (key, *further_keys)


def write_intact_study(folder: Path) -> None:
    """Write a small study: runs that completed, one that failed, a diagnostic, a window of each kind, and telemetry."""
    noted = Recipe(diagnostics=({"subject": "nodes", "message": "cores is 2 on b, but 4 on a"},))
    failed = Recipe(status="failed", reason="trainer-0 exited with code 1")
    alone, pair, broken = (configuration(devices_per_node=count, measured_steps=10) for count in (1, 2, 4))
    paths = StudyPaths(folder)
    write_study(paths, [Planned(alone, noted, runs=1), Planned(pair, runs=2), Planned(broken, failed, 1)])
    samples = [sample(seconds, [gpu(seconds=seconds)], {"package-0": 50.0 * seconds}) for seconds in (0.0, 1.0)]
    with_telemetry(
        paths.configuration(alone.configuration_id).run(1), samples[0], samples, obstacles={"rapl": "not readable"}
    )


class DamagedStudy:
    """A copy of a small study, to which damage is done again and again; the study itself stays as it is."""

    def __init__(self, folder: Path) -> None:
        self._intact, self._damaged = folder / "intact", folder / "damaged"
        write_intact_study(self._intact)
        self.damages = list(damages(self._intact))
        self._changed: list[Damage] = []

    def messages(self, combined: Sequence[Damage]) -> list[str]:
        """Return the diagnostics of the study with all of these damages; that it can't be collected is one message."""
        paths = self.damaged(combined)
        try:
            dataset = collect(paths)
        except RecordError as error:
            return [str(error)]
        return [str(message) for message in dataset.diagnostics["message"]]

    def damaged(self, combined: Sequence[Damage]) -> StudyPaths:
        """Return the study with all of these damages, until the next call."""
        self._restore()
        for damage in combined:
            self._changed.append(damage)
            with suppress(OSError, LookupError, TypeError, ValueError):  # An earlier one has removed what it changes.
                damage.apply(self._damaged)
        return StudyPaths(self._damaged)

    def _restore(self) -> None:
        """Undo the last damages; files are copied alone where that is enough, because folders are slow to remove."""
        if any(isinstance(damage, NewName) for damage in self._changed):
            shutil.rmtree(self._damaged)
        if not self._damaged.exists():
            shutil.copytree(self._intact, self._damaged)
        for damage in (damage for damage in self._changed if not isinstance(damage, NewName)):
            shutil.copy(self._intact / damage.file, self._damaged / damage.file)
        self._changed = []
