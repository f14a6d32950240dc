"""What a ``configuration.json`` beside logs states of them."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from dlperf_study.errors import IdentityError
from dlperf_study.ingest.identity import LogRun, Stated, merged
from dlperf_study.ingest.identity_file import stated_of
from dlperf_study.ingest.inferred_metadata import below_configuration, runs_of
from dlperf_study.ingest.log_files import CONFIGURATION_FILE, Found
from dlperf_study.logs.sources import DAMAGE

#: What programs leave beside their logs.
_NO_LOGS = (".md", ".py", ".sh", ".yaml", ".yml", ".csv", ".png", ".svg", ".pdf", ".html", ".parquet", ".ipynb")


def stated(files: Sequence[Found]) -> tuple[list[Stated], list[Found]]:
    """Return the configurations stated in folders, and the files that lie in none of these.

    Raises:
        IdentityError: a ``configuration.json`` can't be read as one.

    """
    folders = {file.parts[:-1]: file for file in files if file.name == CONFIGURATION_FILE}
    logs: dict[tuple[str, ...], list[Found]] = defaultdict(list)
    strangers = []
    for file in (file for file in files if file.name != CONFIGURATION_FILE):
        folder = next((above for above in _folders_above(file) if above in folders), None)
        if folder is None:
            strangers.append(file)
        elif not file.name.lower().endswith(_NO_LOGS):
            logs[folder].append(file)
    return merged([_stated(file, logs[folder]) for folder, file in folders.items()]), strangers


def _folders_above(file: Found) -> Iterator[tuple[str, ...]]:
    """Yield the folders a file lies in, the nearest first."""
    yield from (file.parts[:length] for length in range(len(file.parts) - 1, 0, -1))


def _stated(file: Found, logs: Sequence[Found]) -> Stated:
    content = _content(file)
    repetition = content.pop("repetition", None)
    if repetition is not None and (type(repetition) is not int or repetition < 1):
        raise IdentityError(f"{file.source}: repetition is {repetition!r}, which is not a whole number above 0")
    stated = stated_of(content, file.place)
    sizes = [stated.parameters.get(name) for name in ("nodes", "devices_per_node")]
    devices = math.prod(size for size in sizes if isinstance(size, int))
    return replace(stated, runs=tuple(_runs(file, logs, repetition, devices)))


def _content(file: Found) -> dict[str, Any]:
    try:
        with file.source.open() as opened:
            content = json.loads(opened.read(), object_pairs_hook=_once_each)
    except (OSError, *DAMAGE, ValueError, RecursionError) as error:
        raise IdentityError(f"{file.source}: can't be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise IdentityError(f"{file.source}: holds {type(content).__name__}; it must be an object of names and values")
    return content


def _once_each(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; raises ValueError where a name stands twice, of which one would be lost."""
    content = dict(pairs)
    if len(content) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"{twice!r} stands there twice")
    return content


def _runs(file: Found, logs: Sequence[Found], stated_repetition: int | None, devices: int) -> Iterator[LogRun]:
    """Yield the runs: the repetition is stated, or told by the names right below the folder, or 1."""
    repetitions: dict[int, list[tuple[str, Found]]] = defaultdict(list)
    for log in logs:
        number, printer = below_configuration(log.parts[len(file.parts) - 1 :])
        repetitions[stated_repetition or number or 1].append((printer, log))
    for repetition, members in sorted(repetitions.items()):
        yield from runs_of(repetition, members, devices)
