"""A disk small enough to be full; it needs the rights of root."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.requirements import ROOT, need

PAGE_BYTES = 4096


@contextmanager
def mounted_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a disk of this size, as ``mount`` gives sizes, in a new folder; skip the test where that is not allowed."""
    need(ROOT, "mount")
    folder.mkdir()
    try:
        mount_disk(folder, size)
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip()
        pytest.skip(f"needs the right to mount: {reason} (enable: run the container with --privileged)")
    try:
        yield folder
    finally:
        unmount_disk(folder)


def mount_disk(folder: Path, size: str) -> None:
    """Mount a disk of this size on a folder; raises CalledProcessError where that is not allowed."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    subprocess.run(mount, capture_output=True, text=True, check=True)


def unmount_disk(folder: Path) -> None:
    """Take the disk away from a folder, also while it is in use."""
    subprocess.run(["umount", "-l", folder], check=True)


def fill(file: Path, pages_left: int = 0) -> None:
    """Write until no more fits than some pages."""
    with suppress(OSError), open(file, "wb", buffering=0) as filler:
        while True:
            filler.write(bytes(PAGE_BYTES))
    with open(file, "r+b") as filler:
        filler.truncate(file.stat().st_size - pages_left * PAGE_BYTES)
