from tests.audit.tables import examined, found, rate

#: The single thread of PaddlePaddle's VGG16, whose page does not state the input.
CPU = {
    "model": "vgg16_cifar",
    "device_name": "Intel Xeon E5-2620 v4",
    "precision": "fp32",
    "threads_per_device": 1,
}


def test_an_input_that_cannot_be_the_usual_one():
    [diagnostic] = found("input_sizes", [rate("16.74", **CPU)])
    assert diagnostic.computation.startswith(
        "the size of the input is not stated, and can't be the network's usual 224: 16.74 samples/s"
    )
    assert "1,543 GFLOP/s of each" in diagnostic.computation
    assert diagnostic.computation.endswith("32 would be possible")


def test_an_inferred_size_is_not_a_stated_one():
    assert len(found("input_sizes", [rate("16.74", image_size=32, inferred="classes, image_size", **CPU)])) == 1


def test_a_stated_size_is_not_questioned():
    assert examined("input_sizes", [rate("16.74", image_size=32, **CPU)]) == []


def test_an_input_that_may_be_the_usual_one():
    assert examined("input_sizes", [rate("1.00", **CPU)]) == [None]


def test_the_fastest_rate_per_device_decides():
    [diagnostic] = found("input_sizes", [rate("15.44", **CPU), rate("335", 20, **CPU), rate("400", 40, **CPU)])
    assert [cell.text for cell in diagnostic.cells] == ["335"]


def test_faster_convolutions_leave_it_open():
    gpu = {"model": "insightface_resnet100", "device_name": "Tesla V100", "precision": "fp32"}
    [diagnostic] = found("input_sizes", [rate("247.0", **gpu)])
    assert "if it is the network's usual 112" in diagnostic.computation
    assert "Winograd" in diagnostic.explanations[0]


def test_a_network_or_a_device_that_is_not_known_is_not_examined():
    assert examined("input_sizes", [rate("16.74", **CPU | {"device_name": "Xeon"})]) == []
    assert examined("input_sizes", [rate("16.74", **CPU | {"model": "r50"})]) == []
