"""Llama 2 7B: 32 layers of 4096 features."""

from dlperf_study.training.models._llama import llama
from dlperf_study.training.models._sequences import Sizes

MODEL = llama(
    "llama2_7b",
    "Llama 2 7B",
    Sizes(layers=32, hidden=4096, heads=32, ffn=11_008, vocabulary=32_000, tied=False),
    "Touvron et al., Llama 2, 2023; feed-forward sizes as released",
)
