"""GPT-2 774M: 36 layers of 1280 features."""

from dlperf_study.training.models._gpt import gpt
from dlperf_study.training.models._sequences import Sizes

MODEL = gpt(
    "gpt2_large",
    "GPT-2 774M",
    Sizes(layers=36, hidden=1280, heads=20, vocabulary=50_257, positions=1024),
    "Radford et al., Language Models are Unsupervised Multitask Learners, 2019; vocabulary and positions as released",
)
