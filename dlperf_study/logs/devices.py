"""What a job ran on, as whoever has its logs states it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Devices:
    """What a log may not say of the job that printed it, and its rate depends on."""

    nodes: int
    devices_per_node: int
    batch_per_device: int

    @property
    def world_size(self) -> int:
        """How many ranks there are; one that drives several devices counts as one, with the batch of them all."""
        return self.nodes * self.devices_per_node
