"""BERT base: 12 layers of 768 features."""

from dlperf_study.training.models._bert import bert
from dlperf_study.training.models._sequences import Sizes

MODEL = bert(
    "bert_base",
    "BERT base",
    Sizes(layers=12, hidden=768, heads=12, vocabulary=30_522, positions=512),
    "Devlin et al., BERT: Pre-training of Deep Bidirectional Transformers, 2019",
)
