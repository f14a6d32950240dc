"""How often the sentences that open a page are right, by simulation.

Launch from the root of the project: ``python -m benchmarks.sentences [--studies 100]``. It prints a table of
docs/statistics.md, and ends with 1 if a kind of sentence is wrong more often than it claims.

The studies are those of ``benchmarks.coverage``: 12 configurations with known ratios to one reference, so that each
sentence is about several of them. A sentence is wrong if it is for one of them, or if a ratio is outside its range. As
with verdicts, at most 5 % of studies should have a wrong one.
"""

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.coverage import DRIFTS, SimulatedStudy, simulated
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.comparison import EQUAL, FASTER, SLOWER, WIDEST_EQUALITY, verdicts_together
from dlperf_study.report.sentences.ratio_sentences import claim_sentences, reference_claims

ROUNDS = (3, 5, 10)
#: How often a sentence may be wrong, and by how many standard errors a simulation may exceed that by chance.
CLAIMED, ERRORS = 0.05, 2.5
_PHRASES = {FASTER: "faster than", SLOWER: "slower than", EQUAL: "as fast as"}
_RANGE = re.compile(r"ratios together are within \[(\S+), (\S+)\]|\(\S+ \[(\S+), (\S+)\] times(?:, judged together)?\)")
#: Half of the last digit of a printed bound, as a share of it at most.
_ROUNDING = 0.0006


def dataset_of(study: SimulatedStudy) -> Dataset:
    """Return a simulated study as pages read one."""
    table = study.configurations().reset_index()
    diagnostics = pd.DataFrame(columns=["identity", "repetition", "severity", "subject", "message"])
    return Dataset(study.plan, Path(), study.runs, table, diagnostics)


def judged(study: SimulatedStudy) -> Iterator[tuple[str, bool]]:
    """Yield the kind of each sentence of a study, and whether it is right."""
    claims = reference_claims(dataset_of(study))
    verdicts = {claim.row.identity: claim.word for claim in claims}
    words = verdicts_together(verdicts, {claim.row.identity: claim.log_ratio for claim in claims})
    sentences = list(claim_sentences(claims))
    for word, phrase in _PHRASES.items():
        truths = [study.truth[identity] for identity, verdict in words.items() if verdict == word]
        for sentence in sentences:
            if phrase in sentence and not sentence.startswith("None of"):
                yield word, all(_is_true(word, truth) for truth in truths)
                yield "range", _holds(sentence, truths)


def _is_true(word: str, truth: float) -> bool:
    if word == EQUAL:
        return abs(truth) <= np.log1p(WIDEST_EQUALITY)
    return truth > 0 if word == FASTER else truth < 0


def _holds(sentence: str, truths: list[float]) -> bool:
    match = _RANGE.search(sentence)
    if match is None:
        raise ValueError(f"no range in: {sentence}")
    low, high = (float(bound) for bound in match.groups() if bound)
    return low * (1 - _ROUNDING) <= np.exp(min(truths)) and np.exp(max(truths)) <= high * (1 + _ROUNDING)


def main() -> int:
    """Print the table; return 1 where a kind of sentence is wrong too often."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=100, help="simulated studies of each row")
    studies = parser.parse_args().studies
    is_good = True
    for stream, (name, drift) in enumerate(DRIFTS.items()):
        for rounds in ROUNDS:
            counts: defaultdict[str, Counter[bool]] = defaultdict(Counter)
            for number in range(studies):
                for kind, is_right in judged(simulated(drift, rounds, (stream, number))):
                    counts[kind][is_right] += 1
            cells = [_cell(counts[kind]) for kind in (*_PHRASES, "range")]
            print(f"| {name} | {rounds} | {' | '.join(cells)} |", flush=True)
            is_good = is_good and not any(_is_beyond(count, studies) for count in counts.values())
    return int(not is_good)


def _cell(count: Counter[bool]) -> str:
    return f"{count[False]} of {count.total()}"


def _is_beyond(count: Counter[bool], studies: int) -> bool:
    """Return whether more studies have a wrong sentence than claimed; a study may have up to three with a range."""
    return count[False] > CLAIMED * studies + ERRORS * np.sqrt(CLAIMED * (1 - CLAIMED) * studies)


if __name__ == "__main__":
    sys.exit(main())
