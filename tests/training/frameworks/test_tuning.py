"""Memory format, autotuning and fused updates: set, and proved by what the library then has or does."""

from typing import Any

import pytest

from dlperf_study.core.errors import RunError
from dlperf_study.study.configuration import Configuration
from dlperf_study.training import frameworks
from dlperf_study.training.libraries import paddle as paddle_library
from dlperf_study.training.libraries import tensorflow as tensorflow_library
from dlperf_study.training.libraries import torch as torch_library
from dlperf_study.training.libraries._base import Output
from dlperf_study.training.libraries._torch_steps import LossScaler, plain_update
from dlperf_study.training.libraries.paddle import Paddle
from dlperf_study.training.libraries.torch import Torch, trained
from dlperf_study.training.worker.warmup import first_steps
from tests.training.frameworks.launching import configuration
from tests.training.frameworks.test_jobs import GPUS

TORCH, MIRRORED = {"framework": "torch_ddp"}, {"framework": "tensorflow_mirrored"}
#: What PyTorch calls in an update, by value.
OPERATORS = {"fused": "_fused_sgd_", "foreach": "_foreach_add_", "for_loop": "add_"}


def updated(requested: Configuration) -> tuple[Any, set[str]]:
    """Return an optimizer of PyTorch after one update of two parameters, and the operators of this update."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    operators: set[str] = set()

    class Recorded(TorchDispatchMode):
        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            operators.add(operator.overloadpacket.__name__)
            return operator(*args, **(kwargs or {}))

    layer = torch.nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    optimizer = Torch(requested).optimizer(trained(layer))
    with Recorded():
        optimizer.step()
    return optimizer, operators


@pytest.mark.needs("torch")
@pytest.mark.parametrize(("value", "expected"), [("default", "for_loop"), *zip(OPERATORS, OPERATORS, strict=True)])
def test_pytorch_says_how_it_updates_and_does_so(value, expected):
    """Of CPUs: on a GPU the default is foreach."""
    optimizer, operators = updated(configuration(**TORCH, fused_optimizer=value))
    assert torch_library.optimizer_kernels(optimizer) == expected
    assert {name for name, operator in OPERATORS.items() if operator in operators} == {expected}


@pytest.mark.needs("torch")
@pytest.mark.parametrize("scaling", ["dynamic", "static"])
def test_an_update_that_a_fused_kernel_skips_is_counted(scaling):
    """PyTorch leaves the look at the gradients to the kernel, and does not wait for what it saw."""
    import torch

    requested = configuration(**TORCH, precision="amp_fp16", loss_scaling=scaling, fused_optimizer="fused")
    layer = torch.nn.Linear(2, 1, bias=False)
    optimizer = Torch(requested).optimizer(trained(layer))
    scaler = LossScaler(Torch(requested), optimizer)
    skipped = []
    for factor in (1.0, float("inf"), 1.0, float("nan")):
        scaler.scaler.scale(layer(torch.ones(1, 2)).sum() * factor).backward()
        plain_update(optimizer, scaler.scaler)
        scaler.update()
        optimizer.zero_grad()
        state = scaler.state()
        assert state
        skipped.append(state.skipped_steps)
    assert skipped == [0, 1, 1, 2]
    assert torch.isfinite(layer.weight).all()


@pytest.mark.needs("torch")
def test_autotuning_is_set_only_if_it_is_asked_for(monkeypatch):
    import torch

    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    states = []
    for value in ("default", "enabled", "default", "disabled", "default"):
        library = Torch(configuration(**TORCH, cudnn_autotune=value))
        states.append(library.autotuning())
    assert states == ["disabled", "enabled", "enabled", "disabled", "disabled"]


@pytest.mark.needs("torch")
def test_the_output_of_a_convolution_tells_its_memory_format():
    """Horovod's parameters keep their format: it follows that of the images."""
    import torch

    network = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3))
    for memory_format, expected in ((torch.contiguous_format, "nchw"), (torch.channels_last, "nhwc")):
        images = torch.ones(2, 3, 8, 8).contiguous(memory_format=memory_format)
        with torch_library.observed_outputs(network) as outputs:
            network(images).sum().backward()
        assert outputs == [Output("float32", expected)]
        assert all(parameter.grad.is_contiguous() for parameter in network.parameters())
    assert torch_library.memory_format(torch.ones(2, 3, 1, 1)) == ""


def test_paddle_updates_all_parameters_in_one_call_as_one_by_one():
    import paddle

    trained = {}
    for value, expected in (("default", "for_loop"), ("for_loop", "for_loop"), ("fused", "fused")):
        paddle.seed(0)
        layer = paddle.nn.Linear(2, 2)
        library = Paddle(configuration(optimizer="momentum", fused_optimizer=value))
        optimizer = library.optimizer(layer.parameters())
        for _ in range(3):
            layer(paddle.ones([1, 2])).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
        assert paddle_library.parameter_update(optimizer) == expected
        trained[value] = layer.weight.numpy().flatten().tolist()
    assert trained["fused"] == pytest.approx(trained["for_loop"])


@pytest.mark.needs("torch")
def test_adamw_of_paddle_is_that_of_pytorch():
    """Three updates, with gradients that differ, so that its means and its decay of weights matter."""
    import paddle
    import torch

    requested = configuration(optimizer="adamw")
    weights = torch.arange(6.0).reshape(2, 3)
    of_torch = torch.nn.Linear(3, 2, bias=False)
    of_torch.weight.data = weights.clone()
    of_paddle = paddle.nn.Linear(3, 2, bias_attr=False)
    of_paddle.weight.set_value(weights.T.numpy())
    updates = (
        Torch(requested).optimizer(list(of_torch.parameters())),
        Paddle(requested).optimizer(of_paddle.parameters()),
    )
    for step in (1.0, 2.0, -1.0):
        inputs = [[step, 0.5, -step]]
        of_torch(torch.tensor(inputs)).pow(2).sum().backward()
        of_paddle(paddle.to_tensor(inputs)).pow(2).sum().backward()
        for update in updates:
            update.step()
        updates[0].zero_grad()
        updates[1].clear_grad()
    trained = of_torch.weight.detach().numpy()
    assert pytest.approx(trained, rel=1e-6, abs=1e-6) == of_paddle.weight.numpy().T
    assert abs(trained - weights.numpy()).max() > 1e-4
    assert paddle_library.parameter_update(updates[1]) == "for_loop"


@pytest.mark.parametrize(("shape", "expected"), [([2, 4, 8, 8], "nchw"), ([2, 8, 8, 4], "nhwc"), ([2, 4, 8, 4], "")])
def test_the_shape_of_features_of_paddle_tells_their_memory_format(shape, expected):
    import paddle

    assert paddle_library.memory_format(paddle.zeros(shape), 4) == expected


def test_tensorflow_reads_autotuning_from_the_environment_of_its_ranks():
    for value, expected in (("default", None), ("enabled", "1"), ("disabled", "0")):
        requested = configuration(framework="tensorflow_mirrored", memory_format="nhwc", cudnn_autotune=value)
        [task] = frameworks.load("tensorflow_mirrored").job(requested, GPUS).tasks
        assert task.environment.get("TF_CUDNN_USE_AUTOTUNE") == expected
    assert [tensorflow_library.autotuning({"TF_CUDNN_USE_AUTOTUNE": value}) for value in ("0", "False", "1")] == [
        "disabled",
        "disabled",
        "enabled",
    ]
    assert tensorflow_library.autotuning({}) == "enabled"


class TunedTrainer:
    """A trainer whose library has these values after the first step."""

    def __init__(self, **values: str) -> None:
        self._values = values

    def barrier(self) -> None:
        """Wait for nobody."""

    def first_step(self) -> str:
        return "float32"

    def tuning(self) -> dict[str, str]:
        return self._values


@pytest.mark.parametrize(
    ("changes", "values"),
    [
        ({"fused_optimizer": "fused"}, {"fused_optimizer": "for_loop"}),
        ({"cudnn_autotune": "enabled"}, {}),
        ({}, {"memory_format": "nhwc"}),
    ],
)
def test_a_run_whose_library_is_tuned_otherwise_ends_before_its_windows(changes, values, refused):
    trainer: Any = TunedTrainer(**values)
    with refused(RunError):
        first_steps(trainer, trainer, configuration(**changes))


def test_what_the_library_chose_itself_is_recorded():
    trainer: Any = TunedTrainer(fused_optimizer="foreach", cudnn_autotune="disabled")
    assert first_steps(trainer, trainer, configuration())["tuning"] == trainer.tuning()
