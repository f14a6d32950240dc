"""What commands print, and where a study they name is."""

import sys
from pathlib import Path

from dlperf_study.paths import outputs_folder
from dlperf_study.writing import full_disk, naming

#: What messages call the standard output.
STANDARD_OUTPUT = Path("standard output")


def print_line(text: str) -> None:
    """Print a text at once; an error names the standard output."""
    with naming(STANDARD_OUTPUT):
        print(text, flush=True)


def print_error(message: str) -> int:
    """Print an error, and whether the disk that commands write to is full; return the exit code."""
    print("; ".join(filter(None, [f"error: {message}", full_disk(outputs_folder())])), file=sys.stderr)
    return 1
