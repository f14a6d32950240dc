"""PyTorch's pipeline parallelism: ranks divide the layers of a transformer, and work on micro-batches in turn.

The schedules are those of ``torch.distributed.pipelining``. Pipelines with samples of their own average their gradients
when the last micro-batch is done; a head that is the embedding is on the first and on the last rank of a pipeline,
which add their gradients of it up.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from dlperf_study.core.user_commands import install_command
from dlperf_study.programs import models
from dlperf_study.programs.frameworks import _torch_divided, _torch_training, torch_ddp
from dlperf_study.programs.frameworks._base import ClusterView
from dlperf_study.programs.frameworks._obstacles import image_obstacles, micro_batch_obstacles
from dlperf_study.programs.frameworks._torch_divided import DividedTrainer
from dlperf_study.programs.frameworks._torch_mesh import device_mesh
from dlperf_study.programs.frameworks._torch_training import TrainingStep
from dlperf_study.programs.models._base import network_of
from dlperf_study.programs.models._sequences import SequenceModel
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.layout import Layout
from dlperf_study.study.parallel_parameters import GPIPE, INTERLEAVED, ONE_FORWARD_ONE_BACKWARD, SCHEDULES

STRATEGIES = ("pipeline",)
LEVELS = _torch_divided.LEVELS | {"strategy": STRATEGIES, "pipeline_schedule": SCHEDULES}
SETTINGS = ("pipeline_parallel", "virtual_stages", "micro_batches")
STAYS = "its layers are divided, so that no step can be done without sending activations"
#: Gradients are averaged in buffers of at most so many bytes, as ``DistributedDataParallel`` does by default.
BUFFER_BYTES = 25 * 2**20


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if configuration.pipeline_parallel == 1:
        yield "pipeline_parallel is 1, but torch_pipeline divides layers among 2 or more; torch_ddp does not"
    yield from micro_batch_obstacles(configuration)
    yield from schedule_obstacles(configuration)
    yield from image_obstacles(configuration, "torch_pipeline")
    yield from undivided_layers(configuration)
    yield from _torch_training.obstacles(
        configuration, cluster, version, "torch", install_command("torch"), SETTINGS, LEVELS
    )


def schedule_obstacles(configuration: Configuration) -> Iterator[str]:
    """Yield why a schedule can't have so many micro-batches, or stages."""
    schedule, parts = configuration.pipeline_schedule, configuration.micro_batches
    stages, chunks = configuration.pipeline_parallel, configuration.virtual_stages
    if schedule == INTERLEAVED and chunks == 1:
        yield f"virtual_stages is 1, but {INTERLEAVED} has 2 or more on each device; {ONE_FORWARD_ONE_BACKWARD} has 1"
    if schedule in (GPIPE, ONE_FORWARD_ONE_BACKWARD) and chunks > 1:
        yield f"virtual_stages is {chunks}, but pipeline_schedule {schedule} has 1 stage on each device"
    if schedule in (ONE_FORWARD_ONE_BACKWARD, INTERLEAVED) and parts < stages:
        yield f"micro_batches is {parts}, but pipeline_schedule {schedule} needs {stages} or more"
    elif schedule == INTERLEAVED and parts % (rounds := parts // stages):
        yield f"micro_batches is {parts}, which {INTERLEAVED} can't divide into {rounds} equal rounds"


def undivided_layers(configuration: Configuration) -> Iterator[str]:
    """Yield that the layers of the model can't be divided equally."""
    name, stages = configuration.model, configuration.pipeline_parallel * configuration.virtual_stages
    model = models.load(name) if name in models.names() else None
    if isinstance(model, SequenceModel) and model.sizes.layers % stages:
        degrees = f"pipeline_parallel {configuration.pipeline_parallel} × virtual_stages {configuration.virtual_stages}"
        yield f"model {name} has {model.sizes.layers} layers, which {degrees} = {stages} stages do not divide"


class PipelineTrainer(DividedTrainer):
    """One rank that has some of the layers; it records losses if it has the last ones."""

    computation_obstacle = STAYS

    def first_step(self, batch: tuple[Any, ...]) -> str:
        """Do the first step, in which the stages tell each other the shapes of their activations, too."""
        number_format = super().first_step(batch)
        self._collectives = [sent for sent in self._collectives if sent.number_format.is_floating_point]
        return number_format

    def close(self) -> None:
        """End the trainer, with all that has a group of ranks; see ``DataParallelTrainer``."""
        self._collectives.clear()
        del self._layer, self._pipeline
        super().close()

    def _parallel(self) -> Any:
        """Return the layers of this rank, as a list of stages."""
        from torch.nn import ModuleList

        with self._dividing():
            tied = tied_weight(self._layer)
            stages = stages_of(self._layer, self._configuration, self.rank)
            self._layer = ModuleList(stages.values())
        self._pipeline = Pipeline(self._configuration, stages, self.rank, self._device, tied)
        return self._layer

    def _step(self, model: Any, optimizer: Any, update: Callable[[Any, Any], None] | None = None) -> TrainingStep:
        update = update or _torch_training.plain_update
        return PipelinedStep(self._configuration, self._pipeline, optimizer, self._device, update)


class PipelinedStep(TrainingStep):
    """Forward and backward of all micro-batches, through all stages; then the exchange of gradients and the update."""

    def _gradients(self, batch: tuple[Any, ...], share: int = 1) -> Any:
        """Add the gradients of a batch; return its loss on ranks that have the last stage, None on others."""
        with self._autocast():
            loss = self._model(*batch)
        self._model.exchange_gradients()
        return loss


class Pipeline:
    """The stages of one rank, in the order of a schedule, and the exchange of gradients after it.

    ``stages``: by their position in the pipeline; the last takes the targets of a batch too, and returns the loss.
    ``tied``: the parameter that the first and the last stage share, or None.
    """

    def __init__(
        self, configuration: Configuration, stages: Mapping[int, Any], rank: int, device: Any, tied: Any = None
    ) -> None:
        layout = configuration.layout
        mesh = device_mesh(layout, device)
        self._is_first, self._is_last = layout.coordinates(rank).pipeline == 0, layout.holds_loss(rank)
        self._schedule = _schedule(configuration, stages, mesh["pipeline"].get_group(), device)
        self._parameters = [parameter for stage in stages.values() for parameter in stage.parameters()]
        self._replicas, self._data = layout.data, mesh["data"].get_group() if layout.data > 1 else None
        ends = _group_of_ends(layout, rank, mesh["pipeline"].get_group()) if tied is not None else None
        self._tied: Any = tied if self._is_first or self._is_last else None
        self._ends = ends

    def __call__(self, inputs: Any, *targets: Any) -> Any:
        """Add the gradients of a batch, which all ranks of a pipeline have; return its mean loss, None without it."""
        import torch

        losses: list[Any] = []
        if self._is_last:
            named = {f"target_{position}": target for position, target in enumerate(targets)}
            self._schedule.step(target=targets[0], losses=losses, return_outputs=False, **named)
        else:
            self._schedule.step(*([inputs] if self._is_first else []), return_outputs=False)
        return torch.stack(losses).mean().detach() if losses else None

    def exchange_gradients(self) -> None:
        """Average the gradients over pipelines, and add those of the shared parameter up."""
        import torch.distributed as dist

        for parameters in _buffers(self._parameters) if self._data else ():
            _average([parameter.grad for parameter in parameters], self._replicas, self._data)
        if self._tied is not None:
            dist.all_reduce(self._tied.grad, group=self._ends)


def stages_of(layer: Any, configuration: Configuration, rank: int) -> dict[int, Any]:
    """Return the stages of a rank by their position: equal numbers of blocks, in turn to each rank of a pipeline.

    The first stage has what comes before the blocks too, the last what comes after them, and the loss.
    """
    from dlperf_study.programs.models._torch_transformer import stage_of

    network = network_of(layer)
    ranks, count = configuration.pipeline_parallel, configuration.pipeline_parallel * configuration.virtual_stages
    size, stages = len(network.blocks) // count, {}
    for position in range(configuration.layout.coordinates(rank).pipeline, count, ranks):
        layers = range(position * size, (position + 1) * size)
        part = stage_of(network, layers, position == 0, position == count - 1)
        stages[position] = _taking_targets(part, layer if position == count - 1 else None)
    return stages


def _taking_targets(part: Any, layer: Any) -> Any:
    """Return a stage that may get targets, by name; ``layer``, the network with its loss, is for the last stage."""
    from torch.nn import Module

    class Stage(Module):  # type: ignore[misc]
        def forward(self, features: Any, **targets: Any) -> Any:
            return self.part(features, *targets.values()) if layer is not None else self.part(features)

    stage = Stage()
    if layer is not None:
        layer.network = part
    stage.part = part if layer is None else layer
    return stage


def tied_weight(layer: Any) -> Any:
    """Return the parameter that is the embedding and the head of a network; None if they are two."""
    network = network_of(layer)
    return network.wte.weight if network.wte.weight is network.head.weight else None


def _schedule(configuration: Configuration, stages: Mapping[int, Any], group: Any, device: Any) -> Any:
    """Return the schedule of a rank. The last stage returns the loss itself; PyTorch divides its gradients."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

    def loss(output: Any, _: Any) -> Any:
        return output

    count = configuration.pipeline_parallel * configuration.virtual_stages
    parts = [PipelineStage(stage, position, count, device, group=group) for position, stage in stages.items()]
    if configuration.pipeline_schedule == INTERLEAVED:
        return ScheduleInterleaved1F1B(parts, configuration.micro_batches, loss_fn=loss)
    kind = ScheduleGPipe if configuration.pipeline_schedule == GPIPE else Schedule1F1B
    return kind(parts[0], configuration.micro_batches, loss_fn=loss)


def _group_of_ends(layout: Layout, rank: int, pipeline: Any) -> Any:
    """Return the group of the first and the last rank of a pipeline. All ranks make the groups of all pipelines."""
    import torch.distributed as dist

    if layout.pipeline == 2:
        return pipeline
    group_here = None
    for ranks in layout.groups("pipeline"):
        group = dist.new_group([ranks[0], ranks[-1]])
        group_here = group if rank in (ranks[0], ranks[-1]) else group_here
    return group_here


def _buffers(parameters: list[Any]) -> Iterator[list[Any]]:
    """Yield parameters in order, as many at once as a buffer has room for."""
    taken: list[Any] = []
    size = 0
    for parameter in parameters:
        size += parameter.numel() * parameter.element_size()
        if taken and size > BUFFER_BYTES:
            yield taken
            taken, size = [], parameter.numel() * parameter.element_size()
        taken.append(parameter)
    yield taken


def _average(gradients: list[Any], replicas: int, group: Any) -> None:
    """Replace gradients by their mean over the ranks of a group."""
    import torch.distributed as dist
    from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

    buffer = _flatten_dense_tensors(gradients)
    dist.all_reduce(buffer, group=group)
    buffer /= replicas
    for gradient, mean in zip(gradients, _unflatten_dense_tensors(buffer, gradients), strict=True):
        gradient.copy_(mean)


FRAMEWORK = replace(
    torch_ddp.FRAMEWORK,
    name="torch_pipeline",
    display_name="PyTorch PP",
    strategies=STRATEGIES,
    obstacles=obstacles,
    trainer=PipelineTrainer,
    compilers={},
    alone="",
)
