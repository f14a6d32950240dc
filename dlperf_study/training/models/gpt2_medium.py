"""GPT-2 355M: 24 layers of 1024 features."""

from dlperf_study.training.models._gpt import gpt
from dlperf_study.training.models._sequences import Sizes

MODEL = gpt(
    "gpt2_medium",
    "GPT-2 355M",
    Sizes(layers=24, hidden=1024, heads=16, vocabulary=50_257, positions=1024),
    "Radford et al., Language Models are Unsupervised Multitask Learners, 2019; vocabulary and positions as released",
)
