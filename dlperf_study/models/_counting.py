"""Multiply-accumulates of layers, for one sample; biases, norms and activations are left out, as is usual."""

#: How the counts of the models are meant; each model adds a published number to compare with.
FLOPS_SOURCE = (
    "6 x multiply-accumulates of the forward pass (2 FLOPs each, backward counted as twice the forward: "
    "Amodei and Hernandez, AI and Compute, 2018), over convolutions and fully connected layers"
)


def convolution_macs(inputs: int, outputs: int, kernel: int, output_size: int, groups: int = 1) -> int:
    """Return the count of a square convolution; ``output_size`` is the side of its output in pixels."""
    return inputs // groups * outputs * kernel**2 * output_size**2


def strided(size: int, stride: int) -> int:
    """Return the side of the output of a layer that pads its input by half a kernel."""
    return -(-size // stride)
