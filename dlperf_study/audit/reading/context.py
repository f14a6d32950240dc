"""What the text around a table says of all its rows: the heading above it, and tables of settings before it."""

import re
from collections.abc import Mapping

#: ``on 256 H100s``, ``8 x A100``: a number of devices by their name; ``64 GPUs`` has none.
_DEVICES = re.compile(
    r"\b(?P<devices>\d+)\s*(?:[x×]\s*)?(?:NVIDIA\s+|AMD\s+)?"
    r"(?P<name>[ABHVP]\d{2,3}|GB\d{3}|MI\d{3}X?|L40S?|T4|RTX\s?\w+|TPU\s?v\d\w*|GPUs?|devices|cards)s?\b",
    re.IGNORECASE,
)
_ANY_DEVICE = re.compile(r"GPUs?|devices|cards", re.IGNORECASE)
_MODEL = re.compile(r"\bmodel:\s*(?P<model>\S.*)", re.IGNORECASE)
#: ``2x8`` is two nodes of eight devices, in a label like ``A100 (2x8)``.
_NODES = re.compile(r"\((?P<nodes>\d+)\s*[x×]\s*(?P<devices>\d+)\)")


def facts_of_heading(heading: str) -> dict[str, str]:
    """Return the number and the name of the devices, and the model, if a heading says them."""
    facts = {}
    if match := _MODEL.search(heading):
        facts["model"] = match["model"].strip()
    matches = list(_DEVICES.finditer(heading))
    if len(matches) == 1:
        facts["world_size"] = matches[0]["devices"]
        name = matches[0]["name"]
        if not _ANY_DEVICE.fullmatch(name):
            facts["device_name"] = name
    return facts


def facts_of_label(label: str) -> Mapping[str, str]:
    """Return the devices from the label of a row: ``8xH100``, or nodes and devices of a node, ``A100 (2x8)``."""
    if match := _NODES.search(label):
        return {"nodes": match["nodes"], "devices_per_node": match["devices"]}
    return facts_of_heading(label) if _DEVICES.fullmatch(label) else {}
