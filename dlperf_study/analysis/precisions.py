"""What others call a precision, in our words."""

#: By the word of others in small letters.
_OURS = {"fp16": "amp_fp16", "amp": "amp_fp16", "bf16": "amp_bf16"}


def our_precision(word: str) -> str:
    """Return our word for a precision; any word that is not known stays as it is."""
    return _OURS.get(word.lower(), word)
