"""A Llama that trains on a CPU: the same parts as the published ones, and no result that is worth publishing."""

from dlperf_study.training.models._llama import llama
from dlperf_study.training.models._sequences import Sizes

MODEL = llama(
    "llama_tiny",
    "Llama tiny",
    Sizes(layers=4, hidden=64, heads=8, kv_heads=2, ffn=176, vocabulary=512, tied=False),
    "made for CPUs; nobody published it",
)
