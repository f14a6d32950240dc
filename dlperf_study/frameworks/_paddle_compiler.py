"""Paddle's static graph: ``to_static``, and the same with CINN, its compiler."""

from typing import Any

from dlperf_study.models._base import network_of
from dlperf_study.study.configuration import Configuration

TO_STATIC, CINN = "to_static", "cinn"


def cinn_obstacle() -> str:
    """Return why Paddle can't compile with CINN here, or nothing."""
    import paddle

    if paddle.is_compiled_with_cinn():
        return ""
    return f"paddlepaddle {paddle.__version__} is built without CINN (paddle.is_compiled_with_cinn() is False)"


def compile_network(configuration: Configuration, layer: Any) -> None:
    """Make the network of a layer a static graph, which is traced at its first call; the loss stays dynamic."""
    import paddle

    if configuration.compiler in (TO_STATIC, CINN):
        backend = "CINN" if configuration.compiler == CINN else None
        paddle.jit.to_static(network_of(layer), full_graph=True, backend=backend)
