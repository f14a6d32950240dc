"""PyTorch's pipeline parallelism: ranks divide the layers of a transformer, and work on micro-batches in turn.

The schedules are those of ``torch.distributed.pipelining``. Pipelines with samples of their own average their gradients
when the last micro-batch is done; a head that is the embedding is on the first and on the last rank of a pipeline,
which add their gradients of it up. Ranks may divide the matrices of each stage too, as ``torch_tensor`` does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.layout import Layout
from dlperf_study.study.parallel_parameters import GPIPE, INTERLEAVED, ONE_FORWARD_ONE_BACKWARD, SCHEDULES
from dlperf_study.training.frameworks import _torch, _torch_divided, torch_ddp
from dlperf_study.training.frameworks._base import ClusterView
from dlperf_study.training.frameworks._obstacles import image_obstacles, micro_batch_obstacles, sequence_model
from dlperf_study.training.frameworks._torch_divided import divide, divide_gradients, undivided_sizes
from dlperf_study.training.frameworks.torch_tensor import TensorTrainer
from dlperf_study.training.libraries import torch as torch_library
from dlperf_study.training.libraries._torch_steps import TrainingStep, Update, plain_update
from dlperf_study.training.models._base import without_loss

STRATEGIES = ("pipeline",)
BUILT = _torch_divided.BUILT | {"strategy": STRATEGIES, "pipeline_schedule": SCHEDULES}
SETTINGS = ("pipeline_parallel", "virtual_stages", "micro_batches", "tensor_parallel", "sequence_parallel")
STAYS = "its layers are split into stages: every step sends activations"
#: Gradients are averaged in buffers of at most so many bytes, as ``DistributedDataParallel`` does by default.
BUFFER_BYTES = 25 * 2**20


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    if configuration.pipeline_parallel == 1:
        yield "pipeline_parallel is 1, but torch_pipeline splits layers over 2 or more devices; use torch_ddp"
    yield from micro_batch_obstacles(configuration)
    yield from schedule_obstacles(configuration)
    yield from image_obstacles(configuration, "torch_pipeline")
    yield from undivided_layers(configuration)
    yield from undivided_sizes(configuration)
    if configuration.sequence_parallel and configuration.tensor_parallel == 1:
        yield "sequence_parallel shards sequences over the tensor_parallel devices, but tensor_parallel is 1"
    yield from _torch.obstacles(configuration, cluster, version, SETTINGS, BUILT)


def schedule_obstacles(configuration: Configuration) -> Iterator[str]:
    """Yield why a schedule can't have such numbers."""
    schedule, parts = configuration.pipeline_schedule, configuration.micro_batches
    stages, chunks = configuration.pipeline_parallel, configuration.virtual_stages
    if schedule == INTERLEAVED and chunks == 1:
        yield f"virtual_stages is 1, but {INTERLEAVED} has 2 or more on each device; {ONE_FORWARD_ONE_BACKWARD} has 1"
    if schedule in (GPIPE, ONE_FORWARD_ONE_BACKWARD) and chunks > 1:
        yield f"virtual_stages is {chunks}, but pipeline_schedule {schedule} has 1 stage on each device"
    if schedule in (ONE_FORWARD_ONE_BACKWARD, INTERLEAVED) and parts < stages:
        yield f"micro_batches is {parts}, but pipeline_schedule {schedule} needs {stages} or more"
    elif schedule == INTERLEAVED and parts % (rounds := parts // stages):
        problem = f"micro_batches is {parts}, which {INTERLEAVED} cannot split into {rounds} equal rounds"
        yield f"{problem}; give a multiple of pipeline_parallel {stages}"


def undivided_layers(configuration: Configuration) -> Iterator[str]:
    """Yield that the layers can't be divided equally."""
    model, stages = sequence_model(configuration), configuration.pipeline_parallel * configuration.virtual_stages
    if model and model.sizes.layers % stages:
        degrees = f"pipeline_parallel {configuration.pipeline_parallel} × virtual_stages {configuration.virtual_stages}"
        yield f"model {model.name} has {model.sizes.layers} layers, but {degrees} = {stages} stages must divide them"


class PipelineTrainer(TensorTrainer):
    """One rank that has some of the layers, or its part of their matrices; with the last ones it records losses."""

    computation_obstacle = STAYS

    def first_step(self, batch: tuple[Any, ...]) -> str:
        number_format = super().first_step(batch)
        if self._collectives:
            calls = self._collectives.calls
            self._collectives.calls = [call for call in calls if call.number_format.is_floating_point]
        return number_format

    def _forget(self) -> None:
        """Drop all that has a group of ranks."""
        del self._pipeline
        super()._forget()

    def _parallel(self) -> Any:
        """Return the stages of this rank."""
        from torch.nn import ModuleList

        with self._dividing():
            is_tied = tied_weight(self.layer) is not None
            parts = own_parts(self.layer, self._configuration, self.rank)
            if self._configuration.tensor_parallel > 1:
                for part in parts.values():
                    divide(part, self._mesh["tensor"], self._configuration.sequence_parallel)
            stages = pipeline_stages(self.layer, parts, self._configuration)
            self.layer = ModuleList(stages.values())
            self._parts = self._library.trained_parameters(self.layer)
        tied = tied_ends(parts, self._configuration.layout, self.rank, self._mesh) if is_tied else None
        features = features_between(self._configuration)
        self._pipeline = Pipeline(
            self._configuration, stages, self.rank, self._library.device, self._mesh, tied, features
        )
        return self.layer

    def _step(self, model: Any, optimizer: Any, update: Update = plain_update) -> TrainingStep:
        return PipelinedStep(self._library, self._pipeline, optimizer, update)


class PipelinedStep(TrainingStep):
    """Forward and backward of all micro-batches, through all stages; then gradient communication and update."""

    def _gradients(self, batch: tuple[Any, ...], share: int = 1) -> Any:
        with self._autocast():
            loss = self._model(*batch)
        self._model.communication_gradients()
        return loss


class Pipeline:
    """The stages of one rank, in the order of a schedule, and the communication of gradients after it.

    ``stages``: by their position in the pipeline; the last takes the targets of a batch too, and returns the loss.
    ``mesh``: the groups of ranks. ``tied``: of a parameter that the first and the last stage share, where this rank has
    one of them. ``features``: a tensor like those between stages; without it the stages find out in their first step.
    """

    def __init__(
        self,
        configuration: Configuration,
        stages: Mapping[int, Any],
        rank: int,
        device: Any,
        mesh: Any,
        tied: "TiedEnds | None" = None,
        features: Any = None,
    ) -> None:
        layout = configuration.layout
        self._is_first, self._is_last = layout.coordinates(rank).pipeline == 0, layout.holds_loss(rank)
        self._schedule = _schedule(configuration, stages, mesh["pipeline"].get_group(), device, features)
        self._parameters = [parameter for stage in stages.values() for parameter in stage.parameters()]
        self._replicas, self._data = layout.data, mesh["data"].get_group() if layout.data > 1 else None
        self._tied = tied

    def __call__(self, inputs: Any, *targets: Any) -> Any:
        import torch

        losses: list[Any] = []
        if self._is_last:
            named = {f"target_{position}": target for position, target in enumerate(targets)}
            self._schedule.step(target=targets[0], losses=losses, return_outputs=False, **named)
        else:
            own_inputs = [inputs] if self._is_first else []
            self._schedule.step(*own_inputs, return_outputs=False)
        if losses:
            return torch.stack(losses).mean().detach()
        return None

    def communication_gradients(self) -> None:
        """Average gradients over pipelines; add up shared ones."""
        import torch.distributed as dist

        divide_gradients(self._parameters)
        if self._data:
            for parameters in _buffers(self._parameters):
                gradients = [torch_library.own_part(parameter.grad) for parameter in parameters]
                _average(gradients, self._replicas, self._data)
        if self._tied:
            dist.all_reduce(torch_library.own_part(self._tied.parameter.grad), group=self._tied.group)


def own_parts(layer: Any, configuration: Configuration, rank: int) -> dict[int, Any]:
    """Return the parts of a network by position, for one rank."""
    # The first has what comes before the blocks too, the last what comes after them.
    from dlperf_study.training.models._torch_transformer import network_stage

    network = without_loss(layer)
    ranks, count = configuration.pipeline_parallel, configuration.pipeline_parallel * configuration.virtual_stages
    size, parts = len(network.blocks) // count, {}
    for position in range(configuration.layout.coordinates(rank).pipeline, count, ranks):
        layers = range(position * size, (position + 1) * size)
        parts[position] = network_stage(network, layers, position == 0, position == count - 1)
    return parts


def pipeline_stages(layer: Any, parts: Mapping[int, Any], configuration: Configuration) -> dict[int, Any]:
    """Return stages of the parts; the last has the loss."""
    last = configuration.pipeline_parallel * configuration.virtual_stages - 1
    return {position: _taking_targets(part, layer if position == last else None) for position, part in parts.items()}


def _taking_targets(part: Any, layer: Any) -> Any:
    """Return a stage that may get targets by name."""
    from torch.nn import Module

    class Stage(Module):  # type: ignore[misc]
        def forward(self, features: Any, **targets: Any) -> Any:
            if layer is not None:
                return self.part(features, *targets.values())
            return self.part(features)

    stage = Stage()
    if layer is not None:
        layer.network = part
    stage.part = part if layer is None else layer
    return stage


def tied_weight(layer: Any) -> Any:
    """Return the parameter that embedding and head share, or None."""
    network = without_loss(layer)
    if network.wte.weight is network.head.weight:
        return network.wte.weight
    return None


class TiedEnds(NamedTuple):
    """What the first or the last rank of a pipeline has of the parameter that they share, and their group."""

    parameter: Any
    group: Any


def tied_ends(parts: Mapping[int, Any], layout: Layout, rank: int, mesh: Any) -> TiedEnds | None:
    """Return what a rank shares with its pipeline's other end."""
    group = _group_of_ends(layout, rank, mesh["pipeline"].get_group())
    for part in parts.values():
        for name in ("wte", "head"):
            if hasattr(part, name):
                return TiedEnds(getattr(part, name).weight, group)
    return None


def features_between(configuration: Configuration) -> Any:
    """Return a tensor like those between stages, without memory."""
    import torch

    model = sequence_model(configuration)
    assert model  # Others are refused.
    length = configuration.sequence_length
    if configuration.sequence_parallel:
        length //= configuration.tensor_parallel
    sizes = (configuration.batch_per_device // configuration.micro_batches, length, model.sizes.hidden)
    return torch.empty(sizes, device="meta", requires_grad=True)


def _schedule(
    configuration: Configuration, stages: Mapping[int, Any], group: Any, device: Any, features: Any = None
) -> Any:
    """Return the schedule of a rank; the last stage returns the loss."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

    def loss(output: Any, _: Any) -> Any:
        return output

    count = configuration.pipeline_parallel * configuration.virtual_stages
    parts = []
    for position, stage in stages.items():
        examples = _examples(configuration, features, position == 0, position == count - 1)
        parts.append(PipelineStage(stage, position, count, device, group=group, **examples))
    if configuration.pipeline_schedule == INTERLEAVED:
        return ScheduleInterleaved1F1B(parts, configuration.micro_batches, loss_fn=loss)
    kind = ScheduleGPipe if configuration.pipeline_schedule == GPIPE else Schedule1F1B
    return kind(parts[0], configuration.micro_batches, loss_fn=loss)


def _examples(configuration: Configuration, features: Any, is_first: bool, is_last: bool) -> dict[str, Any]:
    """Return tensors like input and output of a stage."""
    import torch

    if features is None:
        return {}
    tokens = torch.empty((len(features), configuration.sequence_length), dtype=torch.int64, device="meta")
    loss = torch.empty((), device="meta", requires_grad=True)
    return {"input_args": tokens if is_first else features, "output_args": loss if is_last else features}


def _group_of_ends(layout: Layout, rank: int, pipeline: Any) -> Any:
    """Return the group of both ends; all ranks make all groups."""
    import torch.distributed as dist

    if layout.pipeline == 2:
        return pipeline
    group_here = None
    for ranks in layout.groups("pipeline"):
        group = dist.new_group([ranks[0], ranks[-1]])
        group_here = group if rank in (ranks[0], ranks[-1]) else group_here
    return group_here


def _buffers(parameters: list[Any]) -> Iterator[list[Any]]:
    """Yield parameters, as many at once as a buffer holds."""
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
