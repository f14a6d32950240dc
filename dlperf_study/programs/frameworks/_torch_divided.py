"""A rank that divides a model, or the state of its training, with other ranks: its collectives are of several kinds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.programs.frameworks import _torch_training, _training
from dlperf_study.programs.frameworks._obstacles import Levels
from dlperf_study.programs.frameworks._torch_collectives import (
    Collective,
    described,
    group_name,
    observed_collectives,
    replayed,
)
from dlperf_study.programs.frameworks.torch_ddp import DataParallelTrainer
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.exchange import COLLECTIVES, CollectiveKind

#: What is built of every strategy that divides a model; each has a ``strategy`` of its own.
LEVELS: Levels = _torch_training.LEVELS | {
    "precision": ("fp32", "tf32", "amp_bf16"),
    "loss_scaling": ("none",),
    "compiler": ("none",),
    "gradient_compression": ("none",),
    "classifier": ("replicated",),
}


class DividedTrainer(DataParallelTrainer):
    """One rank whose exchange is ``COLLECTIVES``; alone, the plain model. They are observed in the first step.

    ``computation_obstacle``: why no step can be done without its exchange; empty if one can.
    """

    #: Parameters that are divided must be contiguous.
    has_parameters_in_memory_format = False
    computation_obstacle = ""

    def __init__(self, configuration: Configuration) -> None:
        self._collectives: list[Collective] = []
        self._whole_checksum = self._first_checksum = ""
        self._whole_sizes: dict[str, Any] = {}
        super().__init__(configuration)
        if self.world_size > 1:
            self.exchange_kind = COLLECTIVES

    def description(self) -> dict[str, Any]:
        """Return the fields of the rank log; parameters and gradients are those of the whole model."""
        return super().description() | self._whole_sizes

    def first_step(self, batch: tuple[Any, ...]) -> str:
        """Do the first step, and observe its collectives; see ``TorchTrainer``."""
        with observed_collectives() as self._collectives:
            return super().first_step(batch)

    def observations(self) -> dict[str, Any]:
        """Return what was observed of the first step: what it exchanges, and which bytes this rank holds."""
        if self.world_size == 1:
            return super().observations()
        return super().observations() | {"exchanges": described(self._collectives, self._configuration.layout)}

    def exchange_alone(self, kind: CollectiveKind | None = None, group: str | None = None) -> Callable[[], None]:
        """Return what does the collectives of a step, of one kind, of one group, or all, with nothing to hide them."""
        of_kind = [collective for collective in self._collectives if kind in (None, collective.kind)]
        layout = self._configuration.layout
        return replayed([c for c in of_kind if group in (None, group_name(c, layout))], self._device)

    def exchange(self, size: int) -> Callable[[], None]:
        """Return what does all collectives of a step; ``size`` is that of all."""
        return self.exchange_alone()

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        """Keep steps from exchanging; raises RunError where they can't be done so."""
        if self.computation_obstacle:
            raise RunError(self.computation_obstacle)
        with super().local_updates():
            yield

    def parameter_checksum(self) -> str:
        """Return a digest of the parameters; of divided ones, of this rank's part once it has changed.

        Before that, it is the digest of the whole model: ranks must divide the same one, which nobody sends to all.
        """
        if not self._whole_checksum:
            return super().parameter_checksum()
        digest = self._checksum_of_part()
        return self._whole_checksum if digest == self._first_checksum else digest

    @contextmanager
    def _dividing(self) -> Iterator[None]:
        """Keep digest and sizes of the whole model before it is divided, and the digest of this rank's part after."""
        description = super().description()
        self._whole_sizes = {name: description[name] for name in ("parameters", "gradient_bytes")}
        self._whole_checksum = super().parameter_checksum()
        yield
        self._first_checksum = self._checksum_of_part()

    def _checksum_of_part(self) -> str:
        parts = (p.to_local() if hasattr(p, "to_local") else p for p in self._trained_parameters())
        return _training.checksum([part.detach().cpu().numpy() for part in parts])
