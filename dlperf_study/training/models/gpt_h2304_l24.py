"""The GPT of DLPerf with 24 layers of 2304 features."""

from dlperf_study.training.models._gpt import gpt
from dlperf_study.training.models._sequences import Sizes

MODEL = gpt(
    "gpt_h2304_l24",
    "GPT 2304 x 24",
    Sizes(layers=24, hidden=2304, heads=24, vocabulary=51_200, positions=2048),
    "OneFlow, DLPerf, OneFlow/LanguageModeling/GPT; a vocabulary of 50,257 padded to 51,200, as its FLOP/s require",
)
