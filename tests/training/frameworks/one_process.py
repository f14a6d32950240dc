"""What one process trains with the whole batch, and what ranks divide that must train the same."""

from dlperf_study.study.configuration import DEFAULTS, Configuration
from dlperf_study.training.models._sequences import Sizes
from tests.training.frameworks.launching import configuration

TOKENS, MASKED, STEPS = 32, 5, 5
#: How losses of strategies may differ, as a share: by the order of sums.
TOLERANCE = 1e-5


def whole(model: str, batch: int) -> Configuration:
    """Return what one process trains, with the whole batch."""
    images = {name: DEFAULTS[name] for name in ("image_size", "classes")}
    sequences = {"sequence_length": TOKENS, "masked_positions": MASKED if model.startswith("bert") else 0}
    steps = {"warmup_steps": STEPS, "measured_steps": 1, "communication_only_steps": 2}
    names = {"framework": "torch_ddp", "optimizer": "adamw", "data_loader": "synthetic_host"}
    return configuration(model=model, batch_per_device=batch, **images | sequences | steps | names)


def divided_parameters(sizes: Sizes, model: str) -> int:
    """Return the parameters of all matrices that ranks divide, and of biases that are divided with them."""
    has_biases, matrices = not model.startswith("llama"), 2 + model.startswith("llama")
    biases = sizes.head * (sizes.heads + 2 * sizes.groups) + sizes.inner if has_biases else 0
    block = sizes.attention_weights + matrices * sizes.hidden * sizes.inner + biases
    vocabulary = sizes.vocabulary * sizes.hidden * (1 if sizes.tied else 2)
    head_bias = sizes.vocabulary if model.startswith("bert") else 0
    return sizes.layers * block + vocabulary + head_bias
