"""What those who start programs must know of them, and the questions that only a node can answer.

``python -m dlperf_study.training.questions SUBJECT ARGUMENT...`` prints an answer as one line of JSON, in the very
Python that trains. Standard library only; ``gpu`` and ``compiler`` import a library, which takes seconds, so they are
asked only where there is a GPU, or where a study compiles.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dlperf_study.core.errors import ImageDatasetError
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import COMMON_DECIDED_VARIABLES, COMMON_PREFIXES, PassedVariables
from dlperf_study.study.gpu_support import GpuQuestion
from dlperf_study.study.job import Job, ProgramFacts
from dlperf_study.training import data_loaders, frameworks
from dlperf_study.training.image_datasets import class_names, require_classes
from dlperf_study.training.image_datasets._photographs import made_image_datasets

MODULE = "dlperf_study.training.questions"


def program_facts() -> ProgramFacts:
    """Return what a check must know of all programs."""
    return ProgramFacts(
        frameworks=frameworks.all_frameworks(),
        gpu_questions={name: gpu_question(name) for name in frameworks.names()},
        variables=passed_variables(),
        libraries=packages_of_libraries(),
        packages=packages(),
        made_image_datasets=made_image_datasets(),
        classes_question=("-m", MODULE, "classes"),
    )


def described(job: Job, configuration: Configuration, image_folder: str) -> Job:
    """Return a job with the facts of its own parts."""
    requirements: tuple[tuple[str, ...], ...] = ()
    if image_folder:
        requirements = (("-m", MODULE, "classes", image_folder, str(configuration.classes)),)
    framework = frameworks.load(configuration.framework)
    further: dict[str, tuple[str, ...]] = {name: (name,) for name in framework.further_packages}
    source = data_loaders.load(configuration.data_loader)
    return replace(
        job,
        framework=framework.name,
        gpu_question=gpu_question(framework.name),
        variables=passed_variables(framework.name),
        libraries={framework.library: framework.packages} | further,
        packages=(*framework.packages, *framework.further_packages, *source.packages),
        requirements=requirements,
    )


def passed_variables(*names: str) -> PassedVariables:
    """Return the variables that reach these frameworks, or any."""
    prefixes, decided = list(COMMON_PREFIXES), list(COMMON_DECIDED_VARIABLES)
    for framework in map(frameworks.load, names or frameworks.names()):
        prefixes += framework.environment_prefixes
        decided += framework.decided_variables
    return PassedVariables(tuple(prefixes), tuple(decided))


def packages_of_libraries() -> dict[str, tuple[str, ...]]:
    """Return the packages of each library, the preferred first."""
    return {framework.library: framework.packages for framework in frameworks.all_frameworks()}


def packages() -> tuple[str, ...]:
    """Return all packages that may take part in a run."""
    names: list[str] = []
    for of_library in packages_of_libraries().values():
        names += of_library
    for source in data_loaders.names():
        names += data_loaders.load(source).packages
    return tuple(names)


def gpu_question(name: str) -> GpuQuestion:
    """Return how a framework's library is asked about GPUs."""
    # Frameworks of one library have the same arguments: its import takes seconds, once.
    framework = frameworks.load(name)
    if not framework.gpu_support:
        return GpuQuestion(name, framework.library)
    arguments = ("-m", MODULE, "gpu", framework.gpu_support.__module__, *framework.packages)
    return GpuQuestion(name, framework.library, arguments, framework.gpu_remedy)


def compiler_question(name: str, compiler: str) -> tuple[str, ...]:
    """Return the arguments that ask about a compiler, or none."""
    if frameworks.load(name).compilers.get(compiler):
        return ("-m", MODULE, "compiler", name, compiler)
    return ()


def _gpu_answer(module: str, *names: str) -> dict[str, Any] | None:
    """Return the GPU support, None without a package."""
    for name in names:
        try:
            version(name)
        except PackageNotFoundError:
            continue
        support: dict[str, Any] = asdict(import_module(module).gpu_support())
        return support
    return None


def _compiler_answer(name: str, compiler: str) -> str:
    """Return why a compiler fails here, or nothing."""
    obstacle = frameworks.load(name).compilers[compiler]
    if obstacle:
        return obstacle()
    return ""


def _classes_answer(folder: str, wanted: str = "") -> dict[str, Any]:
    """Return ``classes`` of a folder, or ``error``."""
    try:
        classes = len(class_names(Path(folder)))
        if wanted:
            require_classes(Path(folder), classes, int(wanted))
    except ImageDatasetError as error:
        return {"error": str(error)}
    return {"classes": classes}


ANSWERS: dict[str, Callable[..., Any]] = {"gpu": _gpu_answer, "compiler": _compiler_answer, "classes": _classes_answer}


def main() -> None:
    """Print the answer to the question of the arguments."""
    subject, *arguments = sys.argv[1:]
    print(json.dumps(ANSWERS[subject](*arguments)))


if __name__ == "__main__":
    main()
