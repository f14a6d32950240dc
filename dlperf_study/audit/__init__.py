"""The audit recomputes every number of a table of results.

It corrects and drops nothing: each diagnostic gives its computation and possible explanations. ``dlperf_study.audit``
is also a public function: called with a frame, this room audits the frame.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from dlperf_study.audit.audit import FrameAudit


class _CallableRoom(ModuleType):
    # Importing any file of the room makes it an attribute of the package, where the function has the same name.
    def __call__(self, frame: "pd.DataFrame") -> "FrameAudit":
        from dlperf_study.audit.audit import audit_frame

        return audit_frame(frame)


sys.modules[__name__].__class__ = _CallableRoom
