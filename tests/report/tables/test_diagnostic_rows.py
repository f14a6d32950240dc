import pytest

from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.report.tables.diagnostic_tables import belongs, mask_numbers, merged
from dlperf_study.study.study import SECTIONS


def test_only_numbers_of_measurements_are_merged_and_compared():
    messages = [
        f"the step time settles only at step {step} of 20; {share} of it" for step, share in ((9, 0.5), (12, 0.25))
    ]
    assert merged(messages) == "the step time settles only at step 9 to 12 of 20; 0.25 to 0.5 of it"
    assert merged(["3 servers on a host of 2 cores"] * 3) == "3 servers on a host of 2 cores"
    assert merged(["it takes 9e-05 s", "it takes 0.01 s"]) == "it takes 9e-05 to 0.01 s"


@pytest.mark.parametrize(
    "said",
    [
        ["rank 0 on a computes 2 times as long", "rank 1 on a computes 2 times as long"],
        ["measured on host-1", "measured on host-2"],
        ["measured with 3.0.0", "measured with 3.1.0"],
        ["left by earlier runs: 4000: python", "left by earlier runs: 4001: python"],
        ["it falls", "it jumped"],
    ],
)
def test_numbers_in_names_are_no_measurements(said):
    assert mask_numbers(said[0]) != mask_numbers(said[1])


def test_every_subject_has_a_page_and_diagnostics_about_throughputs_and_logs_have_several():
    for subject in (*COLUMNS, "orphans_ended"):
        assert any(belongs(subject, question) for question in SECTIONS)
    pages = ["scaling", "comparison", "published", "audit", "quality"]
    for subject in ("drain_seconds", "1n8g/r50_b128_fp32_1.log"):
        assert [question for question in SECTIONS if belongs(subject, question)] == pages
