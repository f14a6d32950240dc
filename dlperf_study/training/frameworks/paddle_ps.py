"""Paddle, static graph, parameters kept by servers.

What Paddle 3.0.0 does, according to the tables of the servers between steps:

- ``Executor.run`` in asynchronous mode pushes gradients but never pulls parameters: the trainers
  would go on with the weights they started with. A step here therefore ends with a pull of all dense
  parameters, as Paddle's ``train_from_dataset`` does in a background thread.
- Pushes are merged: twelve gradients become one message by default. A step's gradient would then be
  communicated every twelfth step, so the limit is set to one before the client starts.
- GEO mode communicates sparse tables only. These models are dense: every trainer would train alone.
- One server's parameters travel in one message, and brpc refuses more than 64 MB. Its setting can no
  longer be passed through Paddle, so it is raised in the loaded library.
- Synchronous mode ends in a segmentation fault in ``SendBarrierOp``, because the runtime makes no communicator
  for it. Made here, it works: the servers average the gradients of a step, and every trainer waits until their
  mean is applied. See ``_paddle_servers.py``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.core.user_commands import install_command
from dlperf_study.study import communication
from dlperf_study.study.communication import Drain
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.environment_variables import VISIBLE_DEVICES
from dlperf_study.study.job import Job, Task, TaskRole
from dlperf_study.training.frameworks import _obstacles, _paddle, _processes
from dlperf_study.training.frameworks._base import ClusterView, Framework
from dlperf_study.training.frameworks._paddle_servers import StaticProgram, connect
from dlperf_study.training.libraries import _base
from dlperf_study.training.libraries import paddle as paddle_library

STRATEGIES = ("local", "async", "sync")
ROLES = {TaskRole.SERVER: "PSERVER", TaskRole.TRAINER: "TRAINER"}
BUILT = _obstacles.BUILT_FOR_ALL | {"strategy": STRATEGIES, "memory_format": ("nchw", "nhwc")}
#: Of the communicator and of brpc: so many computed while a trainer pushed and pulled.
COMMUNICATION_THREADS = 8
#: Parameter servers were removed from the wheels with 3.1 (Paddle pull request 73999).
FIRST_WITHOUT_SERVERS = (3, 1)
REFUSED_STRATEGIES = {
    "geo": "Paddle's GEO mode communicates sparse tables only, so the ranks of a dense model would train alone",
}
_SERVERS_UPDATE = "Paddle's parameter servers update their dense tables themselves"
REFUSED_VALUES = REFUSED_STRATEGIES | {
    kernels: f"fused_optimizer {kernels}: {_SERVERS_UPDATE}" for kernels in ("fused", "foreach", "for_loop")
}


def wrong_version(version: str) -> str:
    """Return that a version has no parameter servers, or nothing."""
    if tuple(map(int, version.split(".")[:2])) < FIRST_WITHOUT_SERVERS:
        return ""
    return f"paddlepaddle {version} has no parameter servers; the last version with them is 3.0"


def obstacles(configuration: Configuration, cluster: ClusterView, version: str | None) -> Iterator[str]:
    """Yield each reason why the configuration can't run here."""
    yield from _obstacles.missing_library("paddlepaddle", version, install_command("paddle"))
    yield from _paddle.obstacles(configuration, cluster.device)
    yield from _obstacles.unsuitable_parts(configuration, "paddle", BUILT, refused=REFUSED_VALUES)
    yield from _paddle.memory_format_obstacles(configuration)
    yield from _obstacles.sequence_obstacles(configuration)
    if configuration.strategy == "local" and (configuration.parameter_servers or configuration.world_size > 1):
        yield "strategy local needs devices_per_node 1, nodes 1 and parameter_servers 0"
    if configuration.strategy in ("async", "sync") and not configuration.parameter_servers:
        yield f"strategy {configuration.strategy} needs parameter_servers of at least 1"
    if configuration.optimizer != "sgd":
        yield f"optimizer {configuration.optimizer} is not supported by Paddle's dense tables (supported: sgd)"
    if configuration.classifier == "sharded":
        yield "a sharded classifier needs collectives between the ranks"
    if version and (wrong := wrong_version(version)):
        yield wrong
    if cluster.device != "cpu":
        yield f"device is {cluster.device}, but parameter servers are supported on cpu only"


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return one task per server and per trainer."""
    # Paddle's launcher is not used here: it waits for servers, and servers never exit by themselves. Its environment,
    # which gives each process its role and number, is what fleet documents for every scheduler. Ports: one per server,
    # one per trainer, one for the rendezvous of the trainers.
    if configuration.strategy == "local":
        return Job((_task(configuration, cluster, TaskRole.TRAINER, 0, 0, {}),))
    nodes = {
        TaskRole.SERVER: _processes.server_nodes(configuration),
        TaskRole.TRAINER: _processes.trainer_nodes(configuration),
    }
    parameter_servers = _processes.addresses("server_host", nodes[TaskRole.SERVER])
    trainers = _processes.addresses("host", nodes[TaskRole.TRAINER], first_port=len(parameter_servers))
    shared = {
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(parameter_servers),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(trainers),
        "PADDLE_TRAINERS_NUM": str(len(trainers)),
        "PADDLE_WITH_GLOO": "1",
    } | _rendezvous(configuration, port=len(parameter_servers) + len(trainers))
    tasks = []
    for role, endpoints in ((TaskRole.SERVER, parameter_servers), (TaskRole.TRAINER, trainers)):
        for index, (node, endpoint) in enumerate(zip(nodes[role], endpoints, strict=True)):
            host, port = endpoint.split(":")
            variables = shared | {"POD_IP": host, "PADDLE_PORT": port, "TRAINING_ROLE": ROLES[role]}
            if role is TaskRole.TRAINER:
                variables["PADDLE_TRAINER_ID"] = str(index)
            variables |= _processes.network_environment(configuration, cluster, node)
            tasks.append(_task(configuration, cluster, role, index, node, variables))
    return Job(tuple(tasks), nodes=configuration.nodes, ports=len(tasks) + 1)


def _rendezvous(configuration: Configuration, port: int) -> dict[str, str]:
    """Return how the trainers find each other."""
    # Paddle's HTTP server, which the first parameter server starts, notices only every five seconds that all have met,
    # and the parameter servers wait for it; its file store looks only every ten seconds for files of others.
    if configuration.world_size == 1:
        return {"PADDLE_GLOO_RENDEZVOUS": "2", "PADDLE_GLOO_FS_PATH": "{run}/scratch/rendezvous"}
    return {"PADDLE_GLOO_RENDEZVOUS": "3", "PADDLE_GLOO_HTTP_ENDPOINT": "{server_host_0}:{port_" + str(port) + "}"}


def _task(
    configuration: Configuration, cluster: ClusterView, role: TaskRole, index: int, node: int, variables: dict[str, str]
) -> Task:
    argv = _processes.worker_command(configuration, cluster)
    # The new intermediate representation can't run the send operators of parameter servers.
    fixed = _processes.common_environment(configuration) | {"FLAGS_enable_pir_api": "0", VISIBLE_DEVICES: ""}
    return Task(f"{role}-{index}", role, node, argv, fixed | variables)


class ParameterServerTrainer:
    """One trainer: it pushes gradients and pulls parameters, or trains alone when there is no server."""

    tensor_library = "paddle"

    def __init__(self, configuration: Configuration) -> None:
        import paddle

        self.rank, self.world_size = paddle_library.environment_rank()
        strategy = communication.STRATEGIES.get(configuration.strategy)
        self.communication_kind = strategy.communication if strategy else communication.NO_COMMUNICATION
        self._configuration = configuration
        self._library = paddle_library.Paddle(configuration)
        self._program = StaticProgram(self._library)
        self._executor = paddle.static.Executor(paddle.CPUPlace())
        self._executor.run(self._program.startup)
        self._running = self._program.step
        self._client = connect(configuration.strategy) if configuration.parameter_servers else None

    def description(self) -> dict[str, Any]:
        elements = sum(self._program.parameter_elements())
        communicated, threads = (4 * elements, COMMUNICATION_THREADS) if self._client else (0, 0)
        description = self._library.description() | _base.model_facts(self._configuration)
        description["device"] = "cpu"
        return description | {"parameters": elements, "gradient_bytes": communicated, "communication_threads": threads}

    def transfer_batch(self, images: Any, labels: Any) -> dict[str, Any]:
        return self._program.feed(images, labels)

    def first_step(self, batch: dict[str, Any]) -> str:
        import numpy as np

        product = self._program.first_product
        if not product:
            raise RunError(_base.NO_PRODUCT)
        _, output = self._executor.run(self._running, feed=batch, fetch_list=[self._program.loss, product])
        if self._client:
            self._client.finish_step()
        return str(np.asarray(output).dtype)

    def tuning(self) -> dict[str, str]:
        memory_format = self._program.memory_format
        if memory_format:
            return {"memory_format": memory_format}
        return {}

    def loss_scaling(self) -> None:
        """Return nothing: losses are not scaled in float32."""

    def train_step(self, batch: dict[str, Any]) -> Any:
        loss = self.computation_step(batch)
        if self._client:
            self._client.finish_step()
        return loss

    def computation_step(self, batch: dict[str, Any]) -> Any:
        return self._executor.run(self._running, feed=batch, fetch_list=[self._program.loss], return_numpy=False)

    @contextmanager
    def local_updates(self) -> Iterator[None]:
        program, self._running = self._running, self._program.local_program
        try:
            yield
        finally:
            self._running = program

    def communicate(self, size: int) -> Callable[[], None]:
        """Return a push of zeros and a pull."""
        # A dense table takes the gradients of all its parameters at once, so there is no push of fewer bytes.
        if not self._client:
            return lambda: None
        return self._client.communicate(partial(self._executor.run, self._program.zero_gradients))

    def barrier(self) -> None:
        if self._client:
            self._client.barrier()

    def agreed_maximum(self, value: float) -> float:
        if self._client:
            return self._client.agreed_maximum(value)
        return value

    def stopwatch(self) -> _base.Stopwatch:
        return self._library.stopwatch()

    def loss_value(self, loss: Any) -> float:
        import numpy as np

        return float(np.asarray(loss[0]).reshape(-1)[0])

    def settle(self) -> Drain:
        if self._client:
            return self._client.settle()
        return Drain()

    def parameter_checksum(self) -> str:
        return _base.checksum(self._program.parameter_values())

    def close(self) -> None:
        if self._client:
            self._client.barrier()
            self._client.stop()


def serve(configuration: Configuration) -> None:
    """Be one parameter server, until the launcher ends this process."""
    from paddle.distributed import fleet

    StaticProgram(paddle_library.Paddle(configuration))
    fleet.init_server()
    fleet.run_server()


FRAMEWORK = Framework(
    name="paddle_ps",
    display_name="PaddlePaddle parameter server",
    library="paddle",
    packages=_paddle.PACKAGES,
    strategies=STRATEGIES,
    obstacles=obstacles,
    wrong_version=wrong_version,
    version_remedy=install_command("paddle"),
    job=job,
    trainer=ParameterServerTrainer,
    server=serve,
    refused_strategies=REFUSED_STRATEGIES,
    environment_prefixes=_paddle.ENVIRONMENT_PREFIXES,
    allocator=paddle_library.PaddleAllocator,
)
