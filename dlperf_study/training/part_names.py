"""The names of the parts that train: which exist, and what pages call them, as the parts say; imports no library."""

from collections.abc import Callable, Collection

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.part_search import cached_by_parts
from dlperf_study.core.wording import unknown_name
from dlperf_study.study.communication import STRATEGIES
from dlperf_study.study.configuration import Configuration
from dlperf_study.training import data_loaders, frameworks, models

#: The place of a value, given the name of its parameter, as messages name it: ``x.yaml: factors.model[0]``.
Locate = Callable[[str, str], str]


@cached_by_parts
def display_names() -> dict[str, str]:
    """Return what pages call each framework, strategy, model and data loader, by its name in the YAML."""
    names = {name: strategy.display_name for name, strategy in STRATEGIES.items()}
    names |= {framework.name: framework.display_name for framework in frameworks.all_frameworks()}
    names |= {name: models.load(name).display_name for name in models.names()}
    return names | {name: data_loaders.load(name).display_name for name in data_loaders.names()}


@cached_by_parts
def same_alone() -> tuple[tuple[str, ...], ...]:
    """Return the names of frameworks that run the same program on one device, a group of each program."""
    groups: dict[str, list[str]] = {}
    for framework in sorted(frameworks.all_frameworks(), key=lambda framework: framework.library != framework.alone):
        if framework.alone:
            groups.setdefault(framework.alone, []).append(framework.name)
    return tuple(tuple(names) for names in groups.values())


@cached_by_parts
def strategies() -> tuple[str, ...]:
    """Return the strategies of all frameworks in alphabetical order, also those that are refused, with a reason."""
    names: set[str] = set()
    for framework in frameworks.all_frameworks():
        names.update(framework.strategies, framework.refused_strategies)
    return tuple(sorted(names))


def require_part_names(configuration: Configuration, locate: Locate) -> None:
    """Raise StudyFileError for a name in a configuration that doesn't exist, with the most similar one and the choices.

    Such a name is an error of the user, unlike one that exists and is not supported: a strategy may be one of another
    framework, or refused with a reason.
    """
    framework, strategy = configuration.framework, configuration.strategy
    _require(f"{locate('framework', framework)} is", framework, "frameworks", frameworks.names())
    if strategy not in strategies():
        kind, built = f"strategies of {framework}", frameworks.load(framework).strategies
        _require(f"{locate('strategy', strategy)} is", strategy, kind, built)
    model, source = configuration.model, configuration.data_loader
    _require(f"{locate('model', model)} is", model, "models", models.names())
    _require(f"{locate('data_loader', source)} is", source, "data loaders", data_loaders.names())


def require_framework_names(keys: Collection[str], key_title: str) -> None:
    """Raise StudyFileError for the first key that is no framework; ``key_title`` is what messages call the section."""
    for name in keys:
        _require(f"{key_title} has a key", name, "frameworks", frameworks.names())


def _require(where: str, name: str, kind: str, choices: Collection[str]) -> None:
    if name not in choices:
        raise StudyFileError(unknown_name(where, name, kind, choices))
