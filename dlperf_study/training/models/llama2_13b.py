"""Llama 2 13B: 40 layers of 5120 features."""

from dlperf_study.training.models._llama import llama
from dlperf_study.training.models._sequences import Sizes

MODEL = llama(
    "llama2_13b",
    "Llama 2 13B",
    Sizes(layers=40, hidden=5120, heads=40, ffn=13_824, vocabulary=32_000, tied=False),
    "Touvron et al., Llama 2, 2023; feed-forward sizes as released",
)
