"""How people write results tables: the content of ``vocabulary.yaml``."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from dlperf_study.study.strict_yaml import read_mapping

Pattern = re.Pattern[str]
Alternatives = Annotated[Pattern, BeforeValidator("|".join)]
Words = frozenset[str]


class Vocabulary(BaseModel):
    """Words and patterns of headings and cells; the YAML file explains each."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    synonyms: dict[str, Words]
    phrases: dict[Pattern, str]
    noise: Words
    job: Words
    other_things: Words
    other_results: Words
    evaluation: Words
    baseline: Words
    multiples: Words
    multiples_in_units: Words
    throughput: Pattern
    unnamed_throughput_of_device: Pattern
    flops: Pattern
    flop_units: dict[str, str]
    model_flops: Pattern
    step_time: Alternatives
    duration: Pattern
    time_units: dict[str, str]
    ratios: dict[str, Pattern]
    ratios_by_sign: Words
    metric_of_sign: dict[str, str]
    ratio_signs: Words
    conditions: dict[str, Alternatives]
    run: Pattern
    numbered_run: Pattern
    summaries: dict[str, str]
    deviations: Words
    interval: Pattern
    about_results: Pattern
    recomputation: Pattern
    devices: Pattern
    labelled_device: Pattern
    any_device: Pattern
    model: Pattern
    node_label: Pattern
    card_label: Pattern
    setting: Pattern
    degree: Pattern
    tokens_of_device: Pattern
    factors: dict[str, float]
    counted: Words
    no_numbers: Words


WORDS = Vocabulary.model_validate(read_mapping(Path(__file__).with_suffix(".yaml")))
SYNONYMS = {synonym: word for word, synonyms in WORDS.synonyms.items() for synonym in synonyms}
