"""Llama 3 70B: 80 layers of 8192 features."""

from dlperf_study.training.models._llama import THETA_3, llama
from dlperf_study.training.models._sequences import Sizes

MODEL = llama(
    "llama3_70b",
    "Llama 3 70B",
    Sizes(layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28_672, vocabulary=128_256, tied=False, theta=THETA_3),
    "Grattafiori et al., The Llama 3 Herd of Models, 2024",
)
