"""What other programs call the levels of the parameter ``precision``."""

#: Names of precisions elsewhere, in lower case, and the level here.
_PRECISIONS = {"fp16": "amp_fp16", "amp": "amp_fp16", "bf16": "amp_bf16"}


def canonical_precision(precision: str) -> str:
    """Return the level of ``precision`` that another program's name for it means; unknown names stay as they are."""
    return _PRECISIONS.get(precision.lower(), precision)
