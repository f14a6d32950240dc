"""Llama 3 8B: 32 layers of 4096 features."""

from dlperf_study.training.models._llama import THETA_3, llama
from dlperf_study.training.models._sequences import Sizes

MODEL = llama(
    "llama3_8b",
    "Llama 3 8B",
    Sizes(layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14_336, vocabulary=128_256, tied=False, theta=THETA_3),
    "Grattafiori et al., The Llama 3 Herd of Models, 2024",
)
