"""How ``make lab`` opens notebooks and reports.

Notebooks get the kernel's description of its language, which git does not have. JupyterLab writes that description,
with the version of Python, into each notebook whose kernel starts, and a notebook that was only opened would be
modified: a question at closing, and a change in git.
"""

import platform
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import AuthenticatedFileHandler
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

#: As a kernel of IPython describes its language, and as Jupyter names that kernel.
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
    "version": platform.python_version(),
}
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
#: What git has of it.
IN_GIT = {"name": "python"}


#: Jupyter's sandbox has no origin, so the server refuses the links, tables and downloads of its pages. This one has,
#: but its scripts can't reach the server.
REPORT_POLICY = (
    "frame-ancestors 'self'; connect-src 'none'; form-action 'none'; child-src 'none'; "
    "sandbox allow-scripts allow-same-origin allow-downloads allow-modals"
)


class ReportFiles(AuthenticatedFileHandler):
    """Files by ``/files/``, where the pages of a report lead to each other."""

    def set_extra_headers(self, path: str) -> None:
        """Set the policy of pages in folders named ``report``."""
        super().set_extra_headers(path)
        if Path(self.absolute_path or "").parent.name == "report":
            self.set_header("Content-Security-Policy", REPORT_POLICY)


class NotebooksAsInGit(AsyncLargeFileManager):
    """Notebooks are read as JupyterLab would change them, and written as they are in git."""

    files_handler_class = ReportFiles

    async def get(self, path: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Return a file or folder; a notebook as in git gets the description of the language of this Python."""
        model: dict[str, Any] = await super().get(path, *arguments, **options)  # type: ignore[no-untyped-call]
        if model["type"] == "notebook" and model["content"]:
            metadata = model["content"]["metadata"]
            if metadata.get("kernelspec", {}).get("name") == KERNEL["name"] and metadata.get("language_info") == IN_GIT:
                metadata |= {"kernelspec": KERNEL, "language_info": LANGUAGE}
        return model

    async def save(self, model: dict[str, Any], path: str = "") -> dict[str, Any]:
        """Write a file; what reading added to a notebook is left out again."""
        content = model.get("content")
        if model.get("type") == "notebook" and content and content["metadata"].get("language_info") == LANGUAGE:
            content["metadata"]["language_info"] = dict(IN_GIT)
        saved: dict[str, Any] = await super().save(model, path)  # type: ignore[no-untyped-call]
        return saved
