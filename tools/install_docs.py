"""Install the pinned MkDocs with its theme into this environment, once: `python -m tools.install_docs`."""

import sys

from tools.installer import ended
from tools.pinned_library import PinnedLibrary

SITE = PinnedLibrary(
    name="docs",
    title="mkdocs-material",
    lock="requirements-docs.lock",
    package="mkdocs-material",
    needed_mb=200,
    purpose="mkdocs-material",
    computes="import material, mkdocs",
)

if __name__ == "__main__":
    sys.exit(ended(SITE.install))
