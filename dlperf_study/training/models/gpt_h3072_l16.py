"""The GPT of DLPerf with 16 layers of 3072 features."""

from dlperf_study.training.models._gpt import gpt
from dlperf_study.training.models._sequences import Sizes

MODEL = gpt(
    "gpt_h3072_l16",
    "GPT 3072 x 16",
    Sizes(layers=16, hidden=3072, heads=32, vocabulary=51_200, positions=2048),
    "OneFlow, DLPerf, OneFlow/LanguageModeling/GPT; a vocabulary of 50,257 padded to 51,200, as its FLOP/s require",
)
