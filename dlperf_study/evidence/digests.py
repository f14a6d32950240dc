"""Digests of what a run left, which tell a file that was changed later from the one that the run wrote.

They are no signature: whoever changes a file on purpose can write another digest. They find what an editor, a merge, a
copy or a disk did.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dlperf_study.core.errors import EvidenceError
from dlperf_study.core.large_files import require_end
from dlperf_study.core.paths import RunPaths

#: The keys of ``run.json``: the digests of the other files of the run, by name, and that of the record itself.
FILES, DIGEST = "files", "digest"


def with_digests(facts: Mapping[str, Any], paths: RunPaths) -> dict[str, Any]:
    """Return the record of a run with the digests of the files that numbers are read from, and with its own."""
    files = {file.name: _digest(file.read_bytes()) for file in paths.evidence_files}
    complete = {**facts, FILES: files}
    return complete | {DIGEST: _of_record(complete)}


def check_digest(facts: Mapping[str, Any], source: str) -> None:
    """Raise EvidenceError where a record is not what the run wrote; those of earlier versions have no digest."""
    if DIGEST in facts and facts[DIGEST] != _of_record(facts):
        raise EvidenceError(f"{source}: was changed after the run: it does not have the digest that it states")


def changed_files(facts: Mapping[str, Any], paths: RunPaths) -> Iterator[str]:
    """Yield which files are not those that the run left."""
    for name, digest in facts.get(FILES, {}).items():
        file = paths.folder / Path(name).name
        try:
            require_end(file)
            is_changed = _digest(file.read_bytes()) != digest
        except OSError as error:
            yield f"{name} was there when the run ended, and can't be read: {error.strerror}"
            continue
        except ValueError:
            yield f"{name!a} can't be the name of a file: run.json was changed"
            continue
        if is_changed:
            yield f"{name} was changed after the run"


def _of_record(facts: Mapping[str, Any]) -> str:
    content = {key: value for key, value in facts.items() if key != DIGEST}
    return _digest(json.dumps(content, sort_keys=True).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
