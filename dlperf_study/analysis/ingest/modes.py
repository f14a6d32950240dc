"""Programs that can also only predict: their rates are none of training."""

from collections.abc import Iterator, Sequence

from dlperf_study.logs.reading import Reading

#: Words of modes in which nothing is trained, unless they speak of training too: ``forward-only``, ``evaluation``.
_UNTRAINED, _TRAINED = ("forward", "eval", "infer", "predict"), "train"


def untrained(readings: Sequence[Reading]) -> Iterator[str]:
    """Yield which log says of itself that it trains nothing."""
    for reading in readings:
        mode = reading.facts.get("mode", "").lower()
        if _TRAINED not in mode and any(word in mode for word in _UNTRAINED):
            yield f"{reading.source}: it states mode {mode}, in which nothing is trained"
