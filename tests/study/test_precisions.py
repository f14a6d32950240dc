import pytest

from dlperf_study.study.configuration import canonical_precision


@pytest.mark.parametrize(
    ("word", "ours"),
    [("fp16", "amp_fp16"), ("AMP", "amp_fp16"), ("bf16", "amp_bf16"), ("fp32", "fp32"), ("TF32", "TF32")],
)
def test_what_others_call_a_precision(word: str, ours: str) -> None:
    assert canonical_precision(word) == ours
