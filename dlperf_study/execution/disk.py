"""Is there room for evidence?"""

import shutil
from pathlib import Path

#: Logs and evidence of one run are far smaller; less than this is a disk about to be full.
FREE_BYTES = 20_000_000


def shortage(folder: Path) -> str:
    """Return in words that too little is free on the disk of ``folder``, which may not exist yet, or nothing."""
    existing = next(one for one in (folder, *folder.resolve().parents) if one.exists())
    free = shutil.disk_usage(existing).free
    if free >= FREE_BYTES:
        return ""
    return f"{folder}: only {free / 1e6:.0f} MB free on this disk; a run needs {FREE_BYTES / 1e6:.0f}"
