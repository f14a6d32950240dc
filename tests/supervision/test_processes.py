"""Exit codes in words."""

import pytest

from dlperf_study.supervision.processes import ending_words


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (255, "exited with code 255"),
        (-9, "was ended by signal SIGKILL"),
        (137, "exited with code 137: a process of its own was ended by SIGKILL"),
        (245, "exited with code 245: a process of its own was ended by SIGSEGV"),
    ],
)
def test_how_a_process_ended_in_words(code: int, words: str) -> None:
    assert ending_words(code) == words
