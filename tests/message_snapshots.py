"""What a test pins of sentences is in ``tests/messages``, a file for each file of tests; numbers are in the tests.

``pytest --snapshot-update`` accepts changed sentences: read them in ``git diff`` before you commit.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.amber import AmberSnapshotExtension

from dlperf_study.core.paths import PROJECT

#: The type of the fixture ``refused``.
Refused = Callable[[type[Exception]], AbstractContextManager[Any]]
TESTS = Path(__file__).parent
#: What is different on each machine or in each run, and what snapshots have in its place.
VOLATILE = (
    (r"/[^\s'\":,;]*/pytest-of-[^/]+/pytest-\d+/(popen-gw\d+/)?[^/\s'\":,;]+", "{tmp}"),
    (r"\bprocess \d+", "process {pid}"),
    (r"\b\d+ min (elapsed|left)", r"{time} \1"),
    (re.escape(sys.executable), "{python}"),
    (re.escape(str(PROJECT)), "{project}"),
)


class MessageFile(AmberSnapshotExtension):
    """Snapshots in the one folder of messages, without what is different from machine to machine."""

    @classmethod
    def dirname(cls, *, test_location: Any) -> str:
        """Return the folder of the snapshots of a file of tests."""
        return str(TESTS / "messages" / Path(test_location.filepath).parent.relative_to(TESTS))

    def serialize(self, data: Any, **options: Any) -> str:
        """Return a value as its snapshot has it."""
        text = super().serialize(data, **options)
        for pattern, name in VOLATILE:
            text = re.sub(pattern, name, text)
        return text


@pytest.fixture
def snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """What the test saw when its sentences were last accepted; the next one at each comparison."""
    return snapshot.use_extension(MessageFile)


@pytest.fixture
def refused(snapshot: SnapshotAssertion) -> Refused:
    """A context that must end with an error of this type and the message that was accepted for this test."""

    @contextmanager
    def refuse(error: type[Exception]) -> Iterator[pytest.ExceptionInfo[Exception]]:
        with pytest.raises(error) as caught:
            yield caught
        assert str(caught.value) == snapshot

    return refuse
