"""BERT large: 24 layers of 1024 features."""

from dlperf_study.training.models._bert import bert
from dlperf_study.training.models._sequences import Sizes

MODEL = bert(
    "bert_large",
    "BERT large",
    Sizes(layers=24, hidden=1024, heads=16, vocabulary=30_522, positions=512),
    "Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers, 2019",
)
