"""The GPT of DLPerf with 12 layers of 768 features."""

from dlperf_study.training.models._gpt import gpt
from dlperf_study.training.models._sequences import Sizes

MODEL = gpt(
    "gpt_h768_l12",
    "GPT 768 x 12",
    Sizes(layers=12, hidden=768, heads=12, vocabulary=51_200, positions=2048),
    "OneFlow, DLPerf, OneFlow/LanguageModeling/GPT; a vocabulary of 50,257 padded to 51,200, as its FLOP/s require",
)
