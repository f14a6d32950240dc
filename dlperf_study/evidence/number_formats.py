"""Whether the ranks of a run computed in its precision, and scaled their losses as it says."""

from collections.abc import Iterator, Sequence

from dlperf_study.evidence.rank_log import RankLog
from dlperf_study.evidence.rank_log_writer import TRAINING, WARMUP
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.precision import COMPUTED_IN


def contradictory_number_formats(logs: Sequence[RankLog], configuration: Configuration) -> Iterator[str]:
    """Yield how the logs of a run contradict its precision and its loss scaling.

    Logs of earlier versions do not say in which number format their rank computed.
    """
    expected = COMPUTED_IN.get(configuration.precision, "no known number format")
    for log in logs:
        computed_in = log.facts.get("computed_in")
        if computed_in is not None and computed_in != expected:
            requested = f"precision is {configuration.precision}, which computes in {expected}"
            yield f"{requested}, but rank {log.rank} computed in {computed_in}"
        if computed_in is not None:
            yield from _contradictory_scaling(log, configuration.loss_scaling)
    scales = dict.fromkeys(log.end.get("loss_scale") for log in logs)
    if len(scales) > 1:
        yield f"the ranks ended with different loss scales ({', '.join(map(str, scales))})"
    # Without exchange each rank has gradients of its own, and skips steps of its own.
    for name in (WARMUP, TRAINING):
        skipped_steps = [log.windows[name].skipped_steps for log in logs]
        if len(set(skipped_steps)) > 1:
            counts = ", ".join(map(str, skipped_steps))
            yield f"the ranks skipped different numbers of steps of window {name} ({counts})"


def _contradictory_scaling(log: RankLog, loss_scaling: str) -> Iterator[str]:
    """Yield whether a rank scaled its losses although it was not asked to, or did not although it was."""
    scale = log.end.get("loss_scale")
    if (scale is None) != (loss_scaling == "none"):
        yield f"loss_scaling is {loss_scaling}, but rank {log.rank} ended with {scale or 'no loss scale'}"
