"""Whether the ranks of a run trained one model: their parameters, and the losses of those that share samples."""

from collections.abc import Iterator, Sequence

import numpy as np

from dlperf_study.evidence.lines import TRAINING, WARMUP
from dlperf_study.evidence.rank_log import RankLog
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.exchange import COLLECTIVES
from dlperf_study.study.layout import OF_COPIES, OF_REPLICA, Layout

#: By how much the losses of ranks that train on the same samples may differ, as a share: by rounding alone.
LOSS_TOLERANCE, LOSS_TOLERANCE_OF_16_BITS = 1e-5, 2e-4


def contradictory_parameters(logs: Sequence[RankLog], layout: Layout) -> Iterator[str]:
    """Yield what is wrong with the parameters that the ranks had in the beginning and in the end.

    In the end, those that have the same part of the model must have the same parameters. ``logs``: in order of rank.
    """
    if any(log.end["initial_checksum"] == log.end["parameter_checksum"] for log in logs):
        yield "the parameters did not change: nothing was trained"
    checksums = [log.end["parameter_checksum"] for log in logs]
    if any(len({checksums[rank] for rank in ranks}) > 1 for ranks in layout.groups(*OF_COPIES)):
        yield "the ranks ended with different parameters: their gradients were not exchanged"


def different_beginnings(logs: Sequence[RankLog]) -> Iterator[str]:
    """Yield that ranks built different models before they divided one: nobody sends the parts of one to all."""
    if logs[0].facts["exchange"] != COLLECTIVES:
        return
    if len({log.end["initial_checksum"] for log in logs}) > 1:
        yield "the ranks built models with different parameters, and divided a patchwork of them"


def different_losses(logs: Sequence[RankLog], configuration: Configuration) -> Iterator[str]:
    """Yield the first step in which ranks that train on the same samples have different losses."""
    layout, is_exact = configuration.layout, configuration.precision == "fp32"
    tolerance = LOSS_TOLERANCE if is_exact else LOSS_TOLERANCE_OF_16_BITS
    for ranks in layout.groups(*OF_REPLICA) if layout.devices_per_replica > 1 else ():
        for name in (WARMUP, TRAINING):
            windows = [logs[rank].windows[name] for rank in ranks if logs[rank].windows[name].losses.size]
            losses = np.array([window.losses for window in windows])
            if not losses.size or np.allclose(losses, losses[0], rtol=tolerance, atol=0, equal_nan=True):
                continue
            step = int(np.argmax(~np.isclose(losses, losses[0], rtol=tolerance, atol=0, equal_nan=True).all(axis=0)))
            values = ", ".join(f"{loss:.7g}" for loss in losses[:, step])
            message = f"ranks {', '.join(map(str, ranks))} trained on the same samples with different losses"
            yield f"{message} ({values} in step {step} of window {name}): they did not train one model"
            return
