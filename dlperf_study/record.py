"""Record the steps of a training program. One file, standard library only: import it, or copy it into a repository.

    from dlperf_study.record import Recorder        # of a copy: from record import Recorder
    recorder = Recorder(model)
    for batch in recorder.input(loader):
        loss = train(batch)
        if not recorder.step(loss):
            break

In a study every rank writes its rank log, as ``docs/files.md`` shows, after the last requested step. Outside
of one, without ``DLPERF_STUDY_RECORD`` in the environment, nothing is recorded.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import hashlib
import json
import math
import os
import platform
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

#: The environment variable with the request of a study, JSON; the formats of evidence, and of recorders.
REQUEST_VARIABLE, FORMAT, RECORDER = "DLPERF_STUDY_RECORD", 2, 1
#: Steps before each window of another kind, so that it includes no first call and begins on all ranks together.
SETTLING_STEPS = 2
#: The variables that launchers set for a rank, and for the number of ranks; the first pair whose rank is set counts.
LAUNCHER_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "SLURM_NTASKS"),
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
LIBRARIES = ("torch", "paddle", "tensorflow", "jax", "mxnet")


@dataclass(frozen=True)
class Request:
    """What a study asks of the recorder: the value of ``REQUEST_VARIABLE`` is this as JSON.

    ``run``: identity and repetition, ``folder``: where its rank logs belong; ``code``: the digest of the benchmark code
    of the controller. ``warmup_steps`` and ``measured_steps`` are those of the two windows, ``compute_only_steps``
    those without communication, half of them before and half after the measured ones: more than 0 with the user's
    consent only.
    """

    run: str
    code: str
    folder: str
    devices_per_node: int
    warmup_steps: int
    measured_steps: int
    compute_only_steps: int = 0

    def as_json(self) -> str:
        """Return the value of ``REQUEST_VARIABLE``."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Request:
        """Return the request of that value; a copy of this file ignores what a later version asks for."""
        names = {declared.name for declared in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text).items() if name in names})


def windows_of(warmup_steps: int, measured_steps: int, compute_only_steps: int = 0) -> list[Window]:
    """Return the windows in order; those without a name settle the program and are not kept."""
    before, after = compute_only_steps // 2, (compute_only_steps + 1) // 2
    windows = [Window("", 1), Window("warmup", warmup_steps)]
    if before:
        windows += [Window("", SETTLING_STEPS, True), Window("computation_before", before, True)]
        windows += [Window("", SETTLING_STEPS)]
    windows += [Window("training", measured_steps)]
    if after:
        windows += [Window("", SETTLING_STEPS, True), Window("computation_after", after, True)]
    return windows


def steps_to_take(warmup_steps: int, measured_steps: int, compute_only_steps: int = 0) -> int:
    """Return how many steps a program must take for these windows: until ``Recorder.step`` returns False."""
    return sum(window.steps for window in windows_of(warmup_steps, measured_steps, compute_only_steps))


@dataclass
class Window:
    """Steps of one kind; ``is_local``: without communication.

    ``marks``: its begin and the ends of its steps; ``waits``: which step waited for its batch, from when to when.
    """

    name: str
    steps: int
    is_local: bool = False
    begin_ns: int = 0
    marks: list[Any] = field(default_factory=list)
    waits: list[tuple[int, Any, Any]] = field(default_factory=list)
    losses: list[Any] = field(default_factory=list)
    samples: list[Any] = field(default_factory=list)
    tokens: list[Any] = field(default_factory=list)

    def line(self, clock: Clock, has_input: bool) -> dict[str, Any]:
        """Return the line of a rank log, without losses if some step has none.

        Of counts that some step lacks there are too few, which the reader of the log refuses.
        """
        seconds = [clock.seconds(begin, end) for begin, end in zip(self.marks, self.marks[1:])]
        line: dict[str, Any] = {"kind": "window", "name": self.name, "steps": len(seconds), "seconds": sum(seconds)}
        line.update(step_seconds=seconds, losses=_numbers(self.losses), begin_ns=self.begin_ns)
        if self.name == "warmup":
            line["ended_by"] = "steps"
        if has_input:
            line["input_seconds"] = self._input_seconds(seconds, clock)
        for name, values in (("samples", self.samples), ("tokens", self.tokens)):
            if given := [value for value in values if value is not None]:
                line[name] = _numbers(given)
        return line

    def _input_seconds(self, step_seconds: list[float], clock: Clock) -> list[float]:
        waited = [0.0] * (len(step_seconds) + 1)
        for step, begin, end in self.waits:
            waited[step] += clock.seconds(begin, end)
        # Rounded apart from the step that they are part of.
        return list(map(min, waited, step_seconds))


class Recorder:
    """The recorder of one rank.

    ``model``: of torch, Paddle or Keras; its parameters are counted, and their digests prove that something was trained
    and that ranks agree. ``rank``, ``world_size``: where neither the library nor the launcher says them.
    """

    def __init__(self, model: Any = None, rank: int | None = None, world_size: int | None = None) -> None:
        request = os.environ.get(REQUEST_VARIABLE)
        self.model, self.is_recording = model, bool(request)
        self._rank, self._world_size, self._pid = rank, world_size, os.getpid()
        if not request:
            self.__dict__["step"] = _continue
            return
        self._request = Request.of(request)
        self._windows = windows_of(*self._counts())
        self._ended: list[Window] = []
        self._window, self._taken, self._has_input = self._windows.pop(0), 0, False
        self._left, self._clock = self._window.steps, Clock()
        self._initial: ModelState | None = None
        self._final: ModelState | None = None
        self._local_steps: LocalSteps | None = None
        self._obstacle, self._copied_bytes = "", 0
        self._anchor = {"unix_ns": time.time_ns(), "clock_ns": time.perf_counter_ns()}
        atexit.register(self.close)

    def step(self, loss: Any = None, samples: Any = None, tokens: Any = None) -> bool:
        """Mark the end of a training step; return False after the last requested one.

        ``samples``, ``tokens``: how many this rank trained in it, where that varies. The device is waited for at the
        ends of windows only.
        """
        window = self._window
        self._left -= 1
        if not self._left:
            self._clock.wait(loss)
        window.marks.append(self._clock.mark())
        # A loss that is kept as it is keeps its graph.
        window.losses.append(loss.detach() if hasattr(loss, "detach") else loss)
        window.samples.append(samples)
        window.tokens.append(tokens)
        return self._left > 0 or self._next_window()

    def input(self, loader: Any) -> Any:
        """Return the loader; how long each step waits for its batch is measured."""
        return _MeasuredLoader(self, loader) if self.is_recording else loader

    def callback(self) -> Any:
        """Return a callback for transformers.Trainer, Lightning or Keras: it calls ``step``, and ends training."""
        lightning = [sys.modules.get(name) for name in ("lightning.pytorch", "pytorch_lightning")]
        # Lightning asks for its own class; the others call whatever has their hooks.
        bases = dict.fromkeys(module.Callback for module in lightning if module is not None)
        return type("RecorderCallback", (_Hooks, *bases), {})(self)

    def close(self) -> None:
        """Write what was recorded, where the program ends before the last requested step."""
        # A process that was forked has the recorder too, and one that was started by a rank its environment.
        if not self.is_recording or os.getpid() != self._pid or os.path.exists(self._path()):
            return
        taken, exception = self._taken + self._window.steps - self._left, getattr(sys, "last_value", None)
        if self._window.name and len(self._window.marks) > 1:
            self._ended.append(self._window)
        reason = "it ended" if exception is None else type(exception).__name__
        self._write(
            {"kind": "incomplete", "steps": taken, "requested": steps_to_take(*self._counts()), "reason": reason}
        )

    def mark_wait(self, begin: Any) -> None:
        """Note that the current step waited for its batch since a mark."""
        self._has_input = True
        self._window.waits.append((max(0, len(self._window.marks) - 1), begin, self.mark()))

    def mark(self) -> Any:
        """Return a mark of the clock of the device."""
        return self._clock.mark()

    def _counts(self) -> tuple[int, int, int]:
        request = self._request
        return request.warmup_steps, request.measured_steps, request.compute_only_steps

    def _next_window(self) -> bool:
        """End the window, and begin the next one that has steps; return whether there is one."""
        self._end_window()
        while self._windows:
            self._window = self._windows.pop(0)
            self._left, self._window.begin_ns = self._window.steps, time.perf_counter_ns()
            self._window.marks.append(self._clock.mark())
            if self._left:
                return True
            self._end_window()
        self._write(self._end_line())
        return False

    def _end_window(self) -> None:
        """Do what is due between two windows, while nothing is measured."""
        window = self._window
        if not self._taken:
            self._begin()
        self._taken += window.steps
        if window.name:
            self._ended.append(window)
        if window.name == "training":
            self._final = ModelState.of(self.model)
        if window.is_local and self._local_steps and self._local_steps.has_communicated():
            self._leave_out_computation("the program switches the communication of gradients itself")
        self._switch_communication(bool(self._windows) and self._windows[0].is_local)

    def _begin(self) -> None:
        """Look at the program after its first step: its device, its ranks and its model are there now."""
        self._clock = Clock.of_device()
        self._rank, self._world_size = _position(self._rank, self._world_size)
        self._initial = ModelState.of(self.model)
        if self._request.compute_only_steps and self._world_size == 1:
            self._leave_out_computation("")
        elif self._request.compute_only_steps and not _ddp_of(self.model):
            self._leave_out_computation("the model of the recorder is not torch's DistributedDataParallel")

    def _leave_out_computation(self, obstacle: str) -> None:
        self._obstacle = obstacle
        self._ended = [window for window in self._ended if not window.is_local]
        self._windows = [window for window in self._windows if not window.is_local]

    def _switch_communication(self, is_local: bool) -> None:
        """Begin or end compute-only steps."""
        if is_local and self._local_steps is None:
            self._local_steps = LocalSteps(_ddp_of(self.model))
        elif not is_local and self._local_steps is not None:
            self._copied_bytes = self._local_steps.copied_bytes
            self._local_steps.end()
            self._local_steps = None

    def _path(self) -> str:
        rank, _ = _position(self._rank, self._world_size)
        return os.path.join(self._request.folder, f"rank-{rank:05d}.jsonl")

    def _write(self, last_line: dict[str, Any]) -> None:
        """Write the log so that it is there completely or not at all; nothing is recorded afterwards."""
        windows = [window.line(self._clock, self._has_input) for window in self._ended]
        path = self._path()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        unfinished = f"{path}.{os.getpid()}.part"
        with open(unfinished, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in (self._rank_line(), *windows, last_line))
        os.replace(unfinished, path)
        self.is_recording, self.model = False, None
        atexit.unregister(self.close)
        self.__dict__["step"] = _stop

    def _rank_line(self) -> dict[str, Any]:
        rank, world_size = _position(self._rank, self._world_size)
        node, local_rank = divmod(rank, self._request.devices_per_node)
        library = _library(self.model)
        version = getattr(sys.modules.get(library), "__version__", platform.python_version())
        line: dict[str, Any] = {"kind": "rank", "format": FORMAT, "recorded_by": "recorder", "scope": "rank"}
        line.update(recorder=RECORDER, run=self._request.run, code=self._request.code)
        line.update(rank=rank, world_size=world_size, node=node, local_rank=local_rank)
        line.update(host=socket.gethostname(), pid=os.getpid(), clock="perf_counter_ns", wall_anchor=self._anchor)
        line.update(device=self._clock.device, library=library, library_version=str(version))
        line["communication"] = "none" if world_size == 1 else "all_reduce" if _ddp_of(self.model) else "unknown"
        if self._initial:
            gradient_bytes = 0 if world_size == 1 else self._initial.bytes
            line.update(parameters=self._initial.parameters, gradient_bytes=gradient_bytes)
            line["sharded"] = self._initial.is_sharded
        return line

    def _end_line(self) -> dict[str, Any]:
        line: dict[str, Any] = {"kind": "end", "windows": len(self._ended)}
        line.update(drain_seconds=0.0, drain_resolution_seconds=0.0)
        if self._initial and self._final:
            line.update(initial_checksum=self._initial.checksum, parameter_checksum=self._final.checksum)
        if self._copied_bytes:
            line["copied_bytes"] = self._copied_bytes
        if self._obstacle:
            line["computation_obstacle"] = self._obstacle
        return line


class Clock:
    """The clock of the device: its events in the order of its work, or the host's; ``wait`` waits for the device."""

    def __init__(
        self, device: str = "cpu", wait: Callable[[], Any] | None = None, event: Callable[[], Any] | None = None
    ) -> None:
        self.device, self._wait, self._event = device, wait, event

    @classmethod
    def of_device(cls) -> Clock:
        """Return the clock of the device that this process uses by now."""
        torch, paddle, tensorflow, jax = (sys.modules.get(name) for name in LIBRARIES[:4])
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            return cls("gpu", torch.cuda.synchronize, lambda: torch.cuda.Event(enable_timing=True))
        if paddle is not None and paddle.device.get_device().startswith("gpu"):
            return cls("gpu", paddle.device.synchronize, lambda: paddle.device.Event(enable_timing=True))
        if tensorflow is not None and tensorflow.config.list_physical_devices("GPU"):
            return cls("gpu", tensorflow.test.experimental.sync_devices)
        return cls("gpu" if jax is not None and jax.default_backend() == "gpu" else "cpu")

    def wait(self, loss: Any) -> None:
        """Wait for the work of the device; that of JAX has no end but its results."""
        if self._wait:
            self._wait()
        elif hasattr(loss, "block_until_ready"):
            loss.block_until_ready()

    def mark(self) -> Any:
        """Return this moment."""
        if self._event is None:
            return time.perf_counter_ns()
        event = self._event()
        event.record()
        return event

    def seconds(self, begin: Any, end: Any) -> float:
        """Return the seconds between two marks."""
        return float((end - begin) / 1e9 if self._event is None else begin.elapsed_time(end) / 1e3)


class LocalSteps:
    """Compute-only steps, by ``no_sync`` of DistributedDataParallel; what they change is restored in the end.

    The copy of parameters, buffers and the states of optimisers is in the memory of the host.
    """

    def __init__(self, ddp: Any) -> None:
        self._ddp = ddp
        self._copies = [(tensor, tensor.detach().to("cpu", copy=True)) for tensor in self._tensors()]
        self.copied_bytes = sum(copy.numel() * copy.element_size() for _, copy in self._copies)
        self._no_sync = ddp.no_sync()
        self._no_sync.__enter__()

    def has_communicated(self) -> bool:
        """Return whether the program has switched the communication on again, as for accumulated gradients."""
        return bool(self._ddp.require_backward_grad_sync)

    def end(self) -> None:
        """Communicate gradients again, and restore what was trained."""
        self._no_sync.__exit__(None, None, None)
        for tensor, copy in self._copies:
            tensor.data.copy_(copy)

    def _tensors(self) -> Iterator[Any]:
        parameters = list(self._ddp.parameters())
        yield from (*parameters, *self._ddp.buffers())
        optimizer_type, trained = sys.modules["torch"].optim.Optimizer, set(map(id, parameters))
        for optimizer in [item for item in gc.get_objects() if issubclass(type(item), optimizer_type)]:
            for parameter, state in optimizer.state.items():
                if id(parameter) in trained:
                    yield from (value for value in state.values() if hasattr(value, "data_ptr"))


class ModelState(NamedTuple):
    """The trainable parameters of a model on this rank: their number, bytes and digest; whether they are a shard."""

    parameters: int
    bytes: int
    checksum: str
    is_sharded: bool

    @classmethod
    def of(cls, model: Any) -> ModelState | None:
        """Return the state of a model of torch, Paddle or Keras; None without trainable parameters."""
        digest, count, size = hashlib.sha256(), 0, 0
        trainable = [] if model is None else _trainable(model)
        for parameter in trainable:
            content = _content(parameter)
            digest.update(content)
            count, size = count + math.prod(_local(parameter).shape), size + len(content)
        return cls(count, size, digest.hexdigest(), _is_sharded(model, trainable)) if count else None


class _MeasuredLoader:
    """A loader of batches, with all that it has, of which each wait for a batch is noted."""

    def __init__(self, recorder: Recorder, loader: Any) -> None:
        self._recorder, self._loader = recorder, loader

    def __iter__(self) -> Iterator[Any]:
        batches, recorder = iter(self._loader), self._recorder
        while recorder.is_recording:
            begin = recorder.mark()
            try:
                batch = next(batches)
            except StopIteration:
                return
            recorder.mark_wait(begin)
            yield batch
        yield from batches

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Hooks:
    """The hooks of transformers.Trainer, Lightning and Keras that matter; all others do nothing."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder, self._updates, self._model = recorder, 0, recorder.model

    def on_train_begin(self, *arguments: Any, model: Any = None, **others: Any) -> None:
        """Begin, with transformers' model."""
        self.set_model(model)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """End a step of transformers.Trainer, which does not tell its loss."""
        if not self._recorder.step():
            control.should_training_stop = True

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """Begin, with Lightning's model as its strategy wraps it."""
        self.set_model(trainer.model)

    def on_train_batch_end(self, *arguments: Any, logs: Any = None, **others: Any) -> None:
        """End a batch of Keras, or one of Lightning, which is a step if it updated parameters."""
        if isinstance(arguments[0], int):
            if not self._recorder.step((logs or {}).get("loss")):
                self._model.stop_training = True
            return
        trainer, _, outputs = arguments[:3]
        if trainer.global_step > self._updates:
            self._updates = trainer.global_step
            if not self._recorder.step(outputs.get("loss") if isinstance(outputs, dict) else outputs):
                trainer.should_stop = True

    def set_model(self, model: Any) -> None:
        """Use this model, unless the recorder was given one; Keras calls it."""
        self._model = self._model if model is None else model
        if self._recorder.model is None:
            self._recorder.model = model

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("on_", "set_", "_implements_")):
            # Keras 2 asks first whether a callback has hooks of batches.
            return lambda *arguments, **others: True if name == "_implements_train_batch_hooks" else None
        raise AttributeError(name)


def _continue(loss: Any = None, samples: Any = None, tokens: Any = None) -> bool:
    return True


def _stop(loss: Any = None, samples: Any = None, tokens: Any = None) -> bool:
    return False


def _position(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return rank and world size: those given, else those of the library, else those of the launcher."""
    names = next((names for names in LAUNCHER_VARIABLES if names[0] in os.environ), ("", ""))
    actual = int(os.environ.get(names[0], 0)), int(os.environ.get(names[1], 1))
    for name in ("torch", "paddle"):
        group: Any = getattr(sys.modules.get(name), "distributed", None)
        if getattr(group, "is_initialized", bool)():
            actual = group.get_rank(), group.get_world_size()
    return actual[0] if rank is None else rank, actual[1] if world_size is None else world_size


def _library(model: Any) -> str:
    """Return the library of the model, else the first that is imported, else python."""
    roots = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    imported = [name for name in LIBRARIES if name in sys.modules]
    return next((name for name in imported if name in roots), (imported or ["python"])[0])


def _ddp_of(model: Any) -> Any:
    """Return the DistributedDataParallel that is the model, is inside of what compiled it, or wraps it; else None."""
    parallel = getattr(getattr(sys.modules.get("torch"), "nn", None), "parallel", None)
    ddp_type, model = getattr(parallel, "DistributedDataParallel", None), getattr(model, "_orig_mod", model)
    if ddp_type is None or model is None or isinstance(model, ddp_type):
        return model if ddp_type is not None else None
    wrappers = [item for item in gc.get_objects() if issubclass(type(item), ddp_type)]
    return next((wrapper for wrapper in wrappers if wrapper.module is model), None)


def _trainable(model: Any) -> list[Any]:
    if hasattr(model, "trainable_variables"):
        return list(model.trainable_variables)
    return [
        item for item in model.parameters() if getattr(item, "requires_grad", not getattr(item, "stop_gradient", 1))
    ]


def _local(parameter: Any) -> Any:
    """Return a parameter, or the shard of it that this rank has."""
    return parameter.to_local() if hasattr(parameter, "to_local") else parameter


def _content(parameter: Any) -> bytes:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(parameter, torch.Tensor):
        return bytes(parameter.numpy().tobytes())
    # numpy has no bfloat16, and may be missing.
    tensor = _local(parameter).detach().cpu().contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def _placements(parameter: Any) -> Any:
    """Return how a parameter is placed on devices; each tensor of Paddle has the attribute, which may be None."""
    return getattr(parameter, "placements", None) or ()


def _is_sharded(model: Any, parameters: list[Any]) -> bool:
    """Return whether ranks have different parts of the parameters: FSDP, DTensor, or DeepSpeed's third stage."""
    shards = any(placement.is_shard() for item in parameters for placement in _placements(item))
    modules = model.modules() if hasattr(model, "modules") else ()
    is_wrapped = any(type(module).__name__ == "FullyShardedDataParallel" for module in modules)
    return shards or is_wrapped or any(hasattr(item, "ds_tensor") for item in parameters)


def _numbers(values: list[Any]) -> list[float]:
    """Return values as numbers, which may wait for the device; none where one is missing or is no number."""
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError, RuntimeError):
        return []
