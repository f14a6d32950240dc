"""A BERT that trains on a CPU: the same parts as the published ones, and no result that is worth publishing."""

from dlperf_study.training.models._bert import bert
from dlperf_study.training.models._sequences import Sizes

MODEL = bert(
    "bert_tiny",
    "BERT tiny",
    Sizes(layers=4, hidden=64, heads=4, vocabulary=512, positions=512),
    "made for CPUs; nobody published it",
)
