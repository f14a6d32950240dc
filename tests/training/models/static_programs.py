"""Train the models that are named for two steps in static mode; print the losses as JSON. Run by test_networks.py."""

import json
import sys
from pathlib import Path

import paddle

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.training.models.networks import batch, build


def losses(name, images, labels):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        inputs = paddle.static.data("images", [None, 3, 32, 32], "float32")
        loss = build(name)(inputs, paddle.static.data("labels", [None, 1], "int64"))
        paddle.optimizer.SGD(0.01).minimize(loss)
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(startup)
    feed = {"images": images, "labels": labels.reshape(-1, 1)}
    return [float(executor.run(main, feed=feed, fetch_list=[loss])[0]) for _ in range(2)]


if __name__ == "__main__":
    arrays = [tensor.numpy() for tensor in batch(4, classes=10)]
    paddle.enable_static()
    print(json.dumps({name: losses(name, *arrays) for name in sys.argv[1:]}))
