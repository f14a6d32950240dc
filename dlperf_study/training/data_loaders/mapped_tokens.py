"""Sequences of a file of tokens, 16 bits each, as nanoGPT's ``.bin``: it is mapped into memory, and never read whole.

Sequence ``p`` of the common order begins at a position that follows from the seed and ``p`` alone, as made-up ones do.
A batch is made when it is requested, so that a step waits for it.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from dlperf_study.core.errors import RunError
from dlperf_study.core.wording import counted
from dlperf_study.study.configuration import PARAMETERS, Configuration
from dlperf_study.study.parameter import SEQUENCES
from dlperf_study.training.data_loaders._base import Consumer, DataLoader, RequestedBatches
from dlperf_study.training.data_loaders._sequences import TOKENS, Tokens, sequence_batches, sequence_model

TOKEN_BYTES = 2
#: How many tokens are compared with the vocabulary at once, and before the training at most: those of a gibibyte.
_CHUNK, _MOST_COMPARED = 2**24, 2**29
NO_FILE = PARAMETERS["token_file"].default


def open_file(configuration: Configuration, consumer: Consumer) -> RequestedBatches:
    """Return the batches of a file; raises RunError if unusable."""
    if obstacle := file_obstacle(configuration):
        raise RunError(obstacle)
    return RequestedBatches(sequence_batches(configuration, consumer, _tokens(configuration)))


def _tokens(configuration: Configuration) -> Tokens:
    """Return the tokens of a file, from a random position for each sequence; raises RunError."""
    import numpy as np

    path, seed = configuration.token_file, configuration.seed
    vocabulary, mapped = sequence_model(configuration).sizes.vocabulary, _mapped(path)

    def tokens(position: int, length: int) -> Any:
        start = int(np.random.default_rng((seed, TOKENS, position)).integers(0, len(mapped) - length + 1))
        sequence = mapped[start : start + length].astype(np.int64)
        if sequence.max() >= vocabulary:
            raise RunError(_above_vocabulary(path, int(sequence.max()), configuration))
        return sequence

    return tokens


def file_obstacle(configuration: Configuration) -> str:
    """Return why a file can't be used here; empty if it can."""
    # Of a file of more than a gibibyte the first one is compared with the vocabulary, and each sequence when it is
    # taken.
    path = Path(configuration.token_file)
    if configuration.samples != SEQUENCES or next(obstacles(configuration, ""), ""):
        return ""
    try:
        size = path.stat().st_size
    except OSError as error:
        return f"token_file {path}: {error.strerror}"
    # The target of a sequence's last token is one more.
    needed = configuration.sequence_length + 1
    if not path.is_file():
        return f"token_file {path} is no file"
    if not size:
        return f"token_file {path} is empty"
    if size % TOKEN_BYTES:
        return f"token_file {path} has {size:,} bytes, and tokens have {TOKEN_BYTES} each"
    if size // TOKEN_BYTES < needed:
        tokens = counted(size // TOKEN_BYTES, "token")
        return f"token_file {path} has {tokens}; a sequence and its last target are {needed:,}"
    largest = _largest_token(str(path), size, path.stat().st_mtime_ns)
    is_known = largest < sequence_model(configuration).sizes.vocabulary
    if is_known:
        return ""
    return _above_vocabulary(str(path), largest, configuration)


def _above_vocabulary(path: str, token: int, configuration: Configuration) -> str:
    model = sequence_model(configuration)
    return f"token_file {path} has the token {token:,}, and {model.name} has {model.sizes.vocabulary:,}"


@cache
def _largest_token(path: str, size: int, modified: int) -> int:
    """Return the largest token of this version of a file."""
    mapped = _mapped(path)
    compared = min(len(mapped), _MOST_COMPARED)
    return max(int(mapped[start : min(start + _CHUNK, compared)].max()) for start in range(0, compared, _CHUNK))


def _mapped(path: str) -> Any:
    import numpy as np

    return np.memmap(path, dtype="<u2", mode="r")


def obstacles(configuration: Configuration, library: str) -> Iterator[str]:
    """Yield that no file is named, or no absolute path."""
    if configuration.token_file == NO_FILE:
        yield "data_loader mapped_tokens needs a token_file"
    elif not Path(configuration.token_file).is_absolute():
        yield f"token_file {configuration.token_file} must be an absolute path, the same on every node"


DATA_LOADER = DataLoader(
    name="mapped_tokens",
    display_name="token file",
    open=open_file,
    obstacle_here=file_obstacle,
    obstacles=obstacles,
    settings={"token_file": "none"},
    samples=(SEQUENCES,),
)
