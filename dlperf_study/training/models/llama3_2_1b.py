"""Llama 3.2 1B: 16 layers of 2048 features, and a head that is the embedding."""

from dlperf_study.training.models._llama import THETA_3, llama
from dlperf_study.training.models._sequences import Sizes

MODEL = llama(
    "llama3_2_1b",
    "Llama 3.2 1B",
    Sizes(layers=16, hidden=2048, heads=32, kv_heads=8, ffn=8_192, vocabulary=128_256, theta=THETA_3),
    "Meta, model card of Llama 3.2, 2024; sizes as released",
)
