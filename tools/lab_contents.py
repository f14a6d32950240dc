"""How ``make lab`` opens notebooks: with the kernel's description of its language, which git does not have.

JupyterLab writes that description, with the version of Python, into each notebook whose kernel starts, and a notebook
that was only opened would be modified: a question at closing, and a change in git.
"""

import platform
from typing import Any

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


class NotebooksAsInGit(AsyncLargeFileManager):
    """Notebooks are read as JupyterLab would change them, and written as they are in git."""

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
