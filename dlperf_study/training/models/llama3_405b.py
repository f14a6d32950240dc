"""Llama 3 405B: 126 layers of 16384 features."""

from dlperf_study.training.models._llama import THETA_3, llama
from dlperf_study.training.models._sequences import Sizes

MODEL = llama(
    "llama3_405b",
    "Llama 3 405B",
    Sizes(layers=126, hidden=16384, heads=128, kv_heads=8, ffn=53_248, vocabulary=128_256, tied=False, theta=THETA_3),
    "Grattafiori et al., The Llama 3 Herd of Models, 2024",
)
