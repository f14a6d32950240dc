"""Text that must not change unnoticed, kept beside the tests."""

import os
from pathlib import Path

GOLDEN = Path(__file__).with_name("golden")
RECORD = "RECORD_GOLDEN"


def check(name: str, text: str) -> None:
    """Compare with the file of that name; with ``RECORD_GOLDEN=1`` write it instead."""
    file = GOLDEN / name
    if os.environ.get(RECORD):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    remedy = f"tests/golden/{name} says something else. If you meant it: {RECORD}=1 pytest, then read `git diff`"
    assert file.exists(), remedy
    assert text == file.read_text(encoding="utf-8"), remedy
