"""Llama 3.2 3B: 28 layers of 3072 features, and a head that is the embedding."""

from dlperf_study.training.models._llama import THETA_3, llama
from dlperf_study.training.models._sequences import Sizes

MODEL = llama(
    "llama3_2_3b",
    "Llama 3.2 3B",
    Sizes(layers=28, hidden=3072, heads=24, kv_heads=8, ffn=8_192, vocabulary=128_256, theta=THETA_3),
    "Meta, model card of Llama 3.2, 2024; sizes as released",
)
