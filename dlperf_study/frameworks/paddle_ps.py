"""Paddle, static graph, parameters kept by servers.

What Paddle 3.0.0 really does, seen by reading the servers' tables between steps:

- ``Executor.run`` in asynchronous mode pushes gradients but never pulls parameters: the trainers
  would go on with the weights they started with. A step here therefore ends with a pull of all dense
  parameters, which is what Paddle's own ``train_from_dataset`` does in a background thread.
- Pushes are merged: twelve gradients become one message by default. A step's gradient would then be
  exchanged every twelfth step, so the limit is set to one before the client starts.
- GEO mode exchanges sparse tables only. These models are dense: every trainer would train alone.
- One server's parameters travel in one message, and brpc refuses more than 64 MB. Its setting can no
  longer be passed through Paddle, so it is raised in the loaded library.
- Synchronous mode ends in a segmentation fault. A substitute from flush, barrier and pull gives equal
  weights, but the client's flush sleeps 100 ms each time, which would be reported as training time.
"""

import ctypes
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dlperf_study.frameworks import paddle_common
from dlperf_study.frameworks.base import (
    ClusterView,
    Framework,
    Stopwatch,
    common_environment,
    environment_rank,
    missing_library,
    unbuilt_level,
    unbuilt_model,
)
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Job, Role, Task

STRATEGIES = ("local", "async")
CLIENT_FLAGS = "-pserver_push_dense_merge_limit=1"
#: Settings of brpc that Paddle 3.0.0 has no way to pass on, by their symbols in its library.
MESSAGE_LIMITS = ("_ZN4brpc5fLU6419FLAGS_max_body_sizeE", "_ZN4brpc5fLI6432FLAGS_socket_max_unwritten_bytesE")
MESSAGE_BYTES = 2**31 - 1
#: Parameter servers were removed from the wheels with 3.1 (Paddle pull request 73999).
FIRST_WITHOUT_SERVERS = (3, 1)
REFUSED = {
    "geo": "Paddle's GEO mode exchanges sparse tables only, so with a dense model every trainer would train alone",
    "sync": "Paddle 3.0.0 ends synchronous mode with a segmentation fault in SendBarrierOp",
}


def unsupported(configuration: Configuration, cluster: ClusterView, version: str | None) -> str | None:
    """Return why the configuration can't run here, or None."""
    return (
        missing_library("paddlepaddle", version)
        or REFUSED.get(configuration.strategy)
        or unbuilt_level(configuration, STRATEGIES)
        or unbuilt_model(configuration, "paddle")
        or _contradiction(configuration)
        or _without_servers(version)
        or (f"device is {cluster.device}, but parameter servers are built for cpu" if cluster.device != "cpu" else None)
    )


def _contradiction(configuration: Configuration) -> str | None:
    if configuration.strategy == "local" and (configuration.servers or configuration.world_size > 1):
        return "strategy local is one process without servers"
    if configuration.strategy == "async" and not configuration.servers:
        return "strategy async needs servers of at least 1"
    if configuration.optimizer != "sgd":
        return f"optimizer {configuration.optimizer} is not kept by Paddle's dense tables (built: sgd)"
    if configuration.classifier == "sharded":
        return "a sharded classifier needs collectives between the trainers"
    return None


def _without_servers(version: str | None) -> str | None:
    numbers = tuple(int(part) for part in (version or "0").split(".")[:2])
    return (
        f"paddlepaddle {version} has no parameter servers (the last that has is 3.0)"
        if (numbers >= FIRST_WITHOUT_SERVERS)
        else None
    )


def job(configuration: Configuration, cluster: ClusterView) -> Job:
    """Return one task per server and per trainer.

    Paddle's launcher is not used here: it waits for servers, and servers never exit by themselves. Its
    environment, by which each process learns its place, is what fleet documents for every scheduler.
    Ports: one per server, one per trainer, one for the rendezvous of the trainers.
    """
    if configuration.strategy == "local":
        return Job((_task(configuration, cluster, "trainer-0", Role.TRAINER, 0, {}),))
    servers, trainers = _places(configuration)
    shared = {
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(servers),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(trainers),
        "PADDLE_TRAINERS_NUM": str(len(trainers)),
        "PADDLE_WITH_GLOO": "1",
    } | _rendezvous(configuration, port=len(servers) + len(trainers))
    server_tasks = (_member(configuration, cluster, Role.SERVER, k, e, shared) for k, e in enumerate(servers))
    trainer_tasks = (_member(configuration, cluster, Role.TRAINER, k, e, shared) for k, e in enumerate(trainers))
    return Job((*server_tasks, *trainer_tasks), ports=len(servers) + len(trainers) + 1)


def _places(configuration: Configuration) -> tuple[list[str], list[str]]:
    """Return the endpoints of servers and trainers; servers go round the nodes."""
    servers = [f"{{host_{k % configuration.nodes}}}:{{port_{k}}}" for k in range(configuration.servers)]
    trainers = [
        f"{{host_{k // configuration.devices_per_node}}}:{{port_{k + configuration.servers}}}"
        for k in range(configuration.world_size)
    ]
    return servers, trainers


def _rendezvous(configuration: Configuration, port: int) -> dict[str, str]:
    """Return how the trainers find each other: over HTTP; a single trainer, by a file that nobody waits for.

    Paddle's HTTP server notices only every five seconds that all have met, and the parameter servers wait for
    it; its file store looks only every ten seconds for files of others.
    """
    if configuration.world_size == 1:
        return {"PADDLE_GLOO_RENDEZVOUS": "2", "PADDLE_GLOO_FS_PATH": "{run}/scratch/rendezvous"}
    return {"PADDLE_GLOO_RENDEZVOUS": "3", "PADDLE_GLOO_HTTP_ENDPOINT": "{host_0}:{port_" + str(port) + "}"}


def _member(
    configuration: Configuration, cluster: ClusterView, role: Role, index: int, endpoint: str, shared: dict[str, str]
) -> Task:
    host, port = endpoint.split(":")
    node = int(host.removeprefix("{host_").removesuffix("}"))
    own = {"POD_IP": host, "PADDLE_PORT": port, "TRAINING_ROLE": "PSERVER" if role is Role.SERVER else "TRAINER"}
    if role is Role.TRAINER:
        own["PADDLE_TRAINER_ID"] = str(index)
    return _task(configuration, cluster, f"{role}-{index}", role, node, shared | own)


def _task(
    configuration: Configuration, cluster: ClusterView, name: str, role: Role, node: int, environment: dict[str, str]
) -> Task:
    argv = (cluster.python_for("paddle_ps"), "-u", "-m", "dlperf_study.worker")
    # The new intermediate representation can't run the send operators of parameter servers.
    fixed = common_environment(configuration) | {"FLAGS_enable_pir_api": "0", "CUDA_VISIBLE_DEVICES": ""}
    return Task(name, role, node, argv, fixed | environment)


class ParameterServerTrainer:
    """One trainer: it pushes gradients and pulls parameters, or trains alone when there is no server."""

    def __init__(self, configuration: Configuration) -> None:
        import paddle

        self.rank, self.world_size = environment_rank()
        self.exchange_kind = "push_pull" if configuration.servers else "none"
        self._configuration = configuration
        self._program = _StaticProgram(configuration)
        self._feed = self._program.feed(*paddle_common.synthetic_batch(configuration))
        self._executor = paddle.static.Executor(paddle.CPUPlace())
        self._executor.run(self._program.startup)
        self._running = self._program.main
        self._client = _connect(configuration) if configuration.servers else None

    def description(self) -> dict[str, Any]:
        """Return what the rank log says about this rank."""
        elements = sum(self._program.parameter_elements())
        return paddle_common.description(self._configuration, elements, 4 * elements if self._client else 0)

    def train_step(self) -> Any:
        """Compute and push the gradients, then pull the parameters; alone, update in place."""
        loss = self.computation_step()
        if self._client:
            self._client.pull()
        return loss

    def computation_step(self) -> Any:
        """Run the present program once: with its ``send`` operator, or without."""
        return self._executor.run(self._running, feed=self._feed, fetch_list=[self._program.loss], return_numpy=False)

    def local_updates(self) -> AbstractContextManager[None]:
        """Take the ``send`` operator out of the program."""
        return self._running_program(self._program.without_send())

    def exchange(self) -> None:
        """Push gradients of zeros, and pull the parameters: what a trainer waits for."""
        if self._client:
            self._executor.run(self._program.send_only)
            self._client.pull()

    def barrier(self) -> None:
        """Wait for all trainers."""
        if self._client:
            self._client.barrier()

    def stopwatch(self) -> Stopwatch:
        """Return a stopwatch for the CPU."""
        return paddle_common.stopwatch()

    def loss_value(self, loss: Any) -> float:
        """Return a fetched loss as a number."""
        import numpy as np

        return float(np.asarray(loss[0]).reshape(-1)[0])

    def settle(self) -> float:
        """Apply every pushed gradient, then pull: all trainers now hold the servers' parameters."""
        if not self._client:
            return 0.0
        start = time.perf_counter()
        self._client.flush()
        self._client.barrier()
        self._client.pull()
        self._client.barrier()
        return time.perf_counter() - start

    def parameter_checksum(self) -> str:
        """Return a digest of the dense parameters."""
        return paddle_common.checksum(self._program.parameter_values())

    def close(self) -> None:
        """Leave the job."""
        if self._client:
            self._client.barrier()
            self._client.stop()

    @contextmanager
    def _running_program(self, program: Any) -> Iterator[None]:
        kept, self._running = self._running, program
        try:
            yield
        finally:
            self._running = kept


class _StaticProgram:
    """The static graph of one trainer or server."""

    def __init__(self, configuration: Configuration) -> None:
        import paddle

        paddle.enable_static()
        size, count = configuration.image_size, configuration.batch_per_device
        self._images = paddle.static.data("images", [count, 3, size, size], "float32")
        self._labels = paddle.static.data("labels", [count, 1], "int64")
        if configuration.servers:
            _join()
        self.loss = paddle_common.build_layer(configuration)(self._images, self._labels)
        self._minimise(configuration)
        self.main = paddle.static.default_main_program()
        self.startup = paddle.static.default_startup_program()
        self.send_only = self._send_only() if self._send_operators(self.main) else None

    def feed(self, images: Any, labels: Any) -> dict[str, Any]:
        """Return what the executor is fed at every step."""
        return {"images": images, "labels": labels.reshape(-1, 1)}

    def without_send(self) -> Any:
        """Return the program with no ``send`` operator: forward and backward alone."""
        program = self.main.clone()
        block = program.global_block()
        for index in reversed(range(len(block.ops))):
            if block.ops[index].type == "send":
                block._remove_op(index)
        return program

    def parameter_elements(self) -> list[int]:
        """Return the number of elements of each trained parameter."""
        import numpy as np

        return [int(np.prod(p.shape)) for p in self.main.all_parameters() if p.trainable]

    def parameter_values(self) -> list[Any]:
        """Return the values of the trained parameters, sorted by name."""
        import numpy as np
        import paddle

        scope = paddle.static.global_scope()
        names = sorted(p.name for p in self.main.all_parameters() if p.trainable)
        return [np.asarray(scope.find_var(name).get_tensor()) for name in names]

    def _minimise(self, configuration: Configuration) -> None:
        import paddle

        optimizer = paddle.optimizer.SGD(paddle_common.LEARNING_RATE)
        if configuration.servers:
            optimizer = paddle.distributed.fleet.distributed_optimizer(optimizer, _asynchronous())
        optimizer.minimize(self.loss)

    def _send_only(self) -> Any:
        """Return a program that makes gradients of zeros and pushes them as the trained one does."""
        import paddle

        program = paddle.static.Program()
        (send,) = self._send_operators(self.main)
        block = program.global_block()
        for name in send.input("X"):
            shape = self.main.global_block().var(name).shape
            variable = block.create_var(name=name, shape=shape, dtype="float32")
            attributes = {"shape": list(shape), "value": 0.0, "dtype": variable.dtype}
            block.append_op(type="fill_constant", outputs={"Out": variable}, attrs=attributes)
        attributes = {name: send.attr(name) for name in ("send_varnames", "is_sparse", "table_id", "op_role")}
        inputs = {"X": [block.var(name) for name in send.input("X")]}
        block.append_op(type="send", inputs=inputs, outputs={"Out": []}, attrs=attributes)
        return program

    @staticmethod
    def _send_operators(program: Any) -> list[Any]:
        return [op for op in program.global_block().ops if op.type == "send"]


class _Client:
    """This trainer's connection to the servers."""

    def __init__(self, runtime: Any, dense_tables: dict[int, list[str]]) -> None:
        self._runtime = runtime
        self._dense_tables = dense_tables

    def pull(self) -> None:
        """Fetch all dense parameters; returns when they are here."""
        import paddle

        scope = paddle.static.global_scope()
        for table, names in self._dense_tables.items():
            self._runtime._worker.pull_dense_params(scope, table, names)

    def flush(self) -> None:
        """Wait until the servers have applied every pushed gradient."""
        self._runtime._worker.client_flush()

    def barrier(self) -> None:
        """Wait for all trainers."""
        from paddle.distributed import fleet

        fleet.barrier_worker()

    def stop(self) -> None:
        """Close the connection; the servers stay."""
        from paddle.distributed import fleet

        fleet.stop_worker()


def _join() -> None:
    from paddle.distributed import fleet

    _allow_large_messages()
    fleet.init(fleet.PaddleCloudRoleMaker(is_collective=False))


def _allow_large_messages() -> None:
    """Lift brpc's limit of 64 MB: all parameters on one server travel in one message, ResNet-50's are 94 MB."""
    from paddle.base import libpaddle

    library = ctypes.CDLL(libpaddle.__file__)
    for symbol in MESSAGE_LIMITS:
        ctypes.c_int64.in_dll(library, symbol).value = MESSAGE_BYTES


def _asynchronous() -> Any:
    from paddle.distributed import fleet

    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    return strategy


def _connect(configuration: Configuration) -> _Client:
    from paddle.distributed import fleet
    from paddle.distributed.ps.utils.public import get_the_one_recv_context

    for endpoint in fleet.server_endpoints():
        paddle_common.wait_for(endpoint)
    runtime = fleet.fleet._runtime_handle
    runtime.ps_desc_builder.ps_desc.init_gflags = CLIENT_FLAGS
    fleet.init_worker()
    tables = get_the_one_recv_context(runtime.context, split_dense_table=runtime.is_heter_ps_mode)
    return _Client(runtime, dict(tables))


def serve(configuration: Configuration) -> None:
    """Be one parameter server, until the launcher ends this process."""
    from paddle.distributed import fleet

    _StaticProgram(configuration)
    fleet.init_server()
    fleet.run_server()


FRAMEWORK = Framework(
    name="paddle_ps",
    library="paddle",
    distributions=paddle_common.DISTRIBUTIONS,
    strategies=STRATEGIES,
    unsupported=unsupported,
    job=job,
    trainer=ParameterServerTrainer,
    server=serve,
)
