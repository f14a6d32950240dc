"""GPT-2 124M: 12 layers of 768 features."""

from dlperf_study.training.models._gpt import gpt
from dlperf_study.training.models._sequences import Sizes

MODEL = gpt(
    "gpt2",
    "GPT-2 124M",
    Sizes(layers=12, hidden=768, heads=12, vocabulary=50_257, positions=1024),
    "Radford et al., Language Models are Unsupervised Multitask Learners, 2019; vocabulary and positions as released",
)
