"""A library that one lock file pins, and its installation into this environment."""

import sys
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tools.installer import (
    PIP,
    InstallationError,
    Log,
    Stamp,
    are_installed,
    check_packages,
    compile_packages,
    need_free,
    pins,
    say,
)


@dataclass(frozen=True)
class PinnedLibrary:
    """A library, and how to install it.

    Attributes:
        name: what messages call it, and its log and stamp.
        title: what its makers call it.
        lock: the file that pins it and what it adds to the pinned packages.
        package: the package with its version.
        needed_mb: room for it, which has ``purpose``.
        computes: a program that fails if the library does not compute.

    """

    name: str
    title: str
    lock: str
    package: str
    needed_mb: int
    purpose: str
    computes: str

    def is_done(self) -> bool:
        """Return whether the version that is installed is the pinned one and was checked."""
        return are_installed(pins(self.lock)) and self._stamp.says(metadata.version(self.package))

    def install(self) -> None:
        """Install what the lock pins, and check that it computes and fits to the other packages."""
        if self.is_done():
            say(f"{self.name}: {metadata.version(self.package)} is installed")
            return
        need_free(Path(sys.prefix), self.needed_mb, self.purpose)
        log = Log(f"{self.name}.log")
        version = pins(self.lock)[self.package]
        say(f"{self.name} 1/2: installing {self.title} {version}, 1-10 minutes with the network (log: {log.path})")
        failure = f"pip could not install {self.title}; is there a network and room on the disk?"
        started = time.time()
        log.run([*PIP, "install", "--no-compile", "-r", self.lock], failure)
        compile_packages(since=started)
        say(f"{self.name} 2/2: checking {metadata.version(self.package)}")
        check_packages()
        log.run([sys.executable, "-c", self.computes], f"{self.title} is installed but does not compute.")
        if not are_installed(pins(self.lock)):
            raise InstallationError(
                f"pip installed other versions than {self.lock} pins; does PIP_CONSTRAINT say otherwise?"
            )
        self._stamp.write(metadata.version(self.package))

    @property
    def _stamp(self) -> Stamp:
        return Stamp(f".{self.name}-ready")
