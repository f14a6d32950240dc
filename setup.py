"""How a wheel is built: notebooks, parameter files and docs, at the top of the repository, become files of the package.

Everything else is in pyproject.toml. An editable installation uses them where they are: core/resources.py finds both.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

#: What a wheel has of them.
RESOURCES = ("notebooks/*.ipynb", "params/*/*.yaml", "params/schema/*.json", "docs/*.md")
RESOURCES += ("params/selftest/program/*.py", "docs/examples/*.py", "docs/examples/studies/*.yaml")


class BuildWithResources(build_py):
    """Copies the resources too; a source archive has them where they are."""

    def run(self):
        """Copy modules and resources into the folder from which the wheel is made."""
        super().run()
        if not self.editable_mode:
            for file in resources():
                target = Path(self.build_lib, "dlperf_study", file)
                self.mkpath(str(target.parent))
                self.copy_file(str(file), str(target))

    def get_source_files(self):
        """Return what a source archive holds."""
        return [*super().get_source_files(), *map(str, resources())]


def resources():
    """Return the files, relative to the top of the repository; the folders are not there in an image's build."""
    return [file for pattern in RESOURCES for file in sorted(Path().glob(pattern))]


setup(cmdclass={"build_py": BuildWithResources})
