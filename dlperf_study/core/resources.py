"""Where the files are that come with this package, and where its user works.

Notebooks, parameter files and docs lie at the top of a checkout, and inside of an installed package. Whoever uses a
checkout works in it; whoever has installed the package works in a folder of their own, and nothing is written into the
package. Standard library only.
"""

from pathlib import Path

PACKAGE_FOLDER = Path(__file__).resolve().parents[1]
#: The top of the checkout that this package is imported from; None if it is installed, with its files inside of it.
CHECKOUT = None if (PACKAGE_FOLDER / "params").is_dir() else PACKAGE_FOLDER.parent
_FILES = CHECKOUT or PACKAGE_FOLDER
#: The notebooks, and the studies, clusters and schemas that come with this package.
NOTEBOOKS, PARAMS = _FILES / "notebooks", _FILES / "params"
#: The pages that messages name, as ``docs/NAME.md``.
DOCS = _FILES / "docs"
#: A folder that holds one of these is a workspace; the second may be a file, too.
WORKSPACE_MARKS = ("studies", ".dlperf_study")
#: The folders with the files of each kind, in ``params/`` and in a workspace.
FOLDERS = {"study": "studies", "cluster": "clusters"}


def notebook(name: str) -> Path:
    """Return the notebook of a name; in its file name a number, its place in a list of files, comes first."""
    return next(NOTEBOOKS.glob(f"[0-9][0-9]_{name}.ipynb"), NOTEBOOKS / f"{name}.ipynb")


def workspace() -> Path:
    """Return the folder of the user's studies, clusters and outputs.

    It is the checkout, for whoever is in it; else the nearest folder, from the current one upwards, with one of
    ``WORKSPACE_MARKS``; else the checkout, or the current folder where there is none.
    """
    current = Path.cwd()
    if CHECKOUT and current.is_relative_to(CHECKOUT):
        return CHECKOUT
    for folder in (current, *current.parents):
        if any((folder / mark).exists() for mark in WORKSPACE_MARKS):
            return folder
    return CHECKOUT or current


def search_folders(kind: str) -> list[Path]:
    """Return the folders of a kind of files, the user's first.

    A study may be in the current folder too; a cluster may not: ``local``, the default, would be any file of that name.
    """
    folders = [workspace() / FOLDERS[kind], PARAMS / FOLDERS[kind]]
    if kind == "study":
        folders.insert(1, Path.cwd())
    return list(dict.fromkeys(folders))


def named_files(kind: str) -> dict[str, Path]:
    """Return the files that are found by name."""
    folders = (PARAMS / FOLDERS[kind], workspace() / FOLDERS[kind])
    return {file.stem: file for folder in folders for file in sorted(folder.glob("*.yaml"))}
