"""Llama 2 70B: 80 layers of 8192 features."""

from dlperf_study.training.models._llama import llama
from dlperf_study.training.models._sequences import Sizes

MODEL = llama(
    "llama2_70b",
    "Llama 2 70B",
    Sizes(layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28_672, vocabulary=32_000, tied=False),
    "Touvron et al., Llama 2, 2023; feed-forward sizes as released",
)
