"""GPT-2 1.5B: 48 layers of 1600 features."""

from dlperf_study.training.models._gpt import gpt
from dlperf_study.training.models._sequences import Sizes

MODEL = gpt(
    "gpt2_xl",
    "GPT-2 1.5B",
    Sizes(layers=48, hidden=1600, heads=25, vocabulary=50_257, positions=1024),
    "Radford et al., Language Models are Unsupervised Multitask Learners, 2019; vocabulary and positions as released",
)
