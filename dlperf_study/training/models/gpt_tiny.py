"""A GPT that trains on a CPU: the same parts as the published ones, and no result that is worth publishing."""

from dlperf_study.training.models._gpt import gpt
from dlperf_study.training.models._sequences import Sizes

MODEL = gpt(
    "gpt_tiny",
    "GPT tiny",
    Sizes(layers=4, hidden=64, heads=4, vocabulary=512, positions=1024),
    "made for CPUs; nobody published it",
)
