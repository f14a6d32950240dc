"""Parameters that change how fast a library computes, and not what: whether it did as it was asked is observed."""

from collections.abc import Iterator, Mapping

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.training_parameters import LIBRARYS_CHOICE

#: Each rank logs the level that its library has after the first step, as far as it can be asked.
TUNED = ("memory_format", "cudnn_autotune", "fused_optimizer")
#: What earlier versions had too: their logs do not say it.
_UNOBSERVED_BEFORE = ("memory_format",)


def tuning_contradictions(configuration: Configuration, observed: Mapping[str, str]) -> Iterator[str]:
    """Yield how the observed levels of a library differ from those that a configuration asks for."""
    for name in TUNED:
        requested, level = getattr(configuration, name), observed.get(name)
        if requested in (LIBRARYS_CHOICE, level) or (level is None and name in _UNOBSERVED_BEFORE):
            continue
        yield f"{name} is {requested}, but the library has {level or 'none that could be observed'}"
