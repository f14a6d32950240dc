"""The message about an invalid study file: the file, the key, the value, and what would be right."""

import re

import pytest

from dlperf_study.errors import StudyFileError
from dlperf_study.study.configuration import parameters_of, study_parameters
from dlperf_study.study.parameter import Scope
from dlperf_study.study.study_file import load_study
from tests.study.examples import STUDIES, STUDY, write

NAMES = ", ".join(study_parameters())
MEASUREMENT = ", ".join(parameters_of(Scope.MEASUREMENT))

#: The error, what replaces what in the file, and the whole message after its name.
ERRORS = [
    (
        "syntax error",
        ("[scaling]", "[scaling"),
        ", line 4, column 8: not YAML: while parsing a flow sequence, expected ',' or ']', but got ':'; "
        "a text that begins with { or [, or contains a colon and a space, needs quotes",
    ),
    ("tab", ("  model:", "\tmodel:"), ", line 7, column 1: a tab; YAML is indented with spaces"),
    (
        "duplicate key",
        ("scaling: weak", "scaling: weak\nscaling: strong"),
        ", line 5, column 1: duplicate key 'scaling'; it is already in line 4",
    ),
    ("not a mapping", (STUDY, "- a\n- b\n"), ": holds a list; it must be a mapping of keys to values"),
    ("one value", (STUDY, "true\n"), ": holds true; it must be a mapping of keys to values"),
    ("empty", (STUDY, ""), ": holds nothing; it must be a mapping of keys to values"),
    (
        "unknown key",
        ("title:", "titel:"),
        ": title is missing\n{file}: unknown key titel; did you mean title? the keys are title, about, questions, "
        "scaling, fixed, factors, include, exclude, baseline, reference, published, extras, "
        "measurement, order, "
        "order_seed, max_configurations, precision, max_repeats, time_budget_minutes, largest_batch, quick",
    ),
    (
        "unknown factor",
        ("  devices_per_node: [1, 2]", "  device_per_node: [1, 2]"),
        f": unknown key factors.device_per_node; did you mean devices_per_node? the keys are {NAMES}",
    ),
    (
        "unknown key of the baseline",
        ("{devices_per_node: 1}", "{devices: 1}"),
        f": unknown key baseline.devices; did you mean devices_per_node? the keys are {NAMES}",
    ),
    (
        "a rule without values",
        ("{devices_per_node: 1}", "[{devices_per_node: 1}]"),
        ": baseline[0].values is missing\n{file}: unknown key baseline[0].devices_per_node; the keys are where, values",
    ),
    (
        "unknown measurement",
        ("fixed:", "measurement: {steps: 5}\nfixed:"),
        f": unknown key measurement.steps; did you mean trace_steps? the keys are {MEASUREMENT}",
    ),
    ("unknown order", ("fixed:", "order: random\nfixed:"), ": order is 'random'; the choices are 'rounds' or 'blocks'"),
    (
        "a largest batch of nothing",
        ("fixed:", "largest_batch: {at_most: 0}\nfixed:"),
        ": largest_batch.at_most is 0; it must be at least 1",
    ),
    (
        "a largest batch without its limit",
        ("fixed:", "largest_batch: {up_to: 8}\nfixed:"),
        ": largest_batch.at_most is missing\n{file}: unknown key largest_batch.up_to; the keys are at_most, where",
    ),
    (
        "a largest batch under strong scaling",
        ("scaling: weak\nfixed: {", "largest_batch: {at_most: 8}\nscaling: strong\nfixed: {global_batch: 64, "),
        ": largest_batch can't be given, because scaling is strong: devices share the global batch",
    ),
    ("negative order_seed", ("fixed:", "order_seed: -1\nfixed:"), ": order_seed is -1; it must be at least 0"),
    (
        "precision in words",
        ("fixed:", "precision: high\nfixed:"),
        ": precision is 'high'; write a percentage, as in precision: 2 %",
    ),
    (
        "precision above all",
        ("fixed:", "precision: 2\nfixed:"),
        ": precision is 2; a number is a share, at most 0.5; write per cent as in precision: 2 %",
    ),
    *(
        (
            f"a precision of {given}",
            ("fixed:", f"precision: {given}\nfixed:"),
            f": precision is '{given}'; it must be at least 0.01 % and at most 50 %",
        )
        for given in ("500 %", "0 %", "51%", "0.009 %")
    ),
    (
        "limit without precision",
        ("fixed:", "max_repeats: 9\nfixed:"),
        ": max_repeats is given, but precision is not; give the precision or leave it out",
    ),
    (
        "precision of blocks",
        ("fixed:", "precision: 2 %\norder: blocks\nfixed:"),
        ": precision needs order: rounds, because blocks have no interval of a ratio",
    ),
    (
        "precision of two runs",
        ("fixed:", "precision: 2 %\nmeasurement: {repeats: 2}\nfixed:"),
        ": measurement.repeats is 2; with precision it must be at least 3",
    ),
    (
        "fewer than the repeats at most",
        ("fixed:", "precision: 2 %\nmax_repeats: 4\nmeasurement: {repeats: 5}\nfixed:"),
        ": max_repeats is 4; it must be at least repeats, which is 5",
    ),
    ("a key that is not a string", ("title:", "7: x\ntitle:"), ", line 1, column 1: this key is not a string"),
    ("a list as key", ("title:", "? [a]\n: x\ntitle:"), ", line 1, column 3: this key is not a string"),
    ("a section without content", ("{devices_per_node: 1}", ""), ": baseline is null, which is not a list"),
    (
        "wrong type",
        ("devices_per_node: [1, 2]", "devices_per_node: [1, two]"),
        ": factors.devices_per_node[1] is 'two', which is not an integer",
    ),
    (
        "a boolean is not a number",
        ("devices_per_node: [1, 2]", "devices_per_node: [true]"),
        ": factors.devices_per_node[0] is true, which is not an integer",
    ),
    ("a title without text", ("title: An example", "title:"), ": title is null, which is not a string"),
    (
        "a number that the versions of YAML read differently",
        ("devices_per_node: [1, 2]", "devices_per_node: [1, 010]"),
        ", line 8, column 25: factors.devices_per_node[1]: 010 starts with a zero, so YAML 1.1 and 1.2 read it "
        "differently; remove it, or quote a string",
    ),
    (
        "a boolean twice",
        ("devices_per_node: [1, 2]", "devices_per_node: [1, 2]\n  hierarchical: [true, true]"),
        ": duplicate level in factors.hierarchical: true, true",
    ),
    (
        "a level that is not a list",
        ("devices_per_node: [1, 2]", "devices_per_node: 2"),
        ": factors.devices_per_node is 2, which is not a list",
    ),
    (
        "unknown level",
        ("fixed: {", "fixed: {precision: fp64, "),
        ": fixed.precision is 'fp64'; the choices are 'fp32', 'tf32', 'amp_fp16', 'amp_bf16', "
        "'amp_fp16_o2' or 'amp_bf16_o2'",
    ),
    (
        "unknown question",
        ("[scaling]", "[speed]"),
        ": questions[0] is 'speed'; the questions are scaling, communication, comparison, published, audit, quality, "
        "replication, resources",
    ),
    (
        "empty factor",
        ("devices_per_node: [1, 2]", "devices_per_node: []"),
        ": factors.devices_per_node is empty; it needs at least 1",
    ),
    (
        "negative repeats",
        ("fixed:", "measurement: {repeats: -1}\nfixed:"),
        ": measurement.repeats is -1; it must be at least 1",
    ),
    (
        "a share above one",
        ("fixed: {", "fixed: {sample_ratio: 1.5, "),
        ": fixed.sample_ratio is 1.5; it must be at most 1.0",
    ),
    (
        "a value of exclude, written without a list",
        ("baseline:", "exclude: [{nodes: 0}]\nbaseline:"),
        ": exclude[0].nodes is 0; it must be at least 1",
    ),
    (
        "fixed and factor",
        ("fixed: {", "fixed: {model: vgg16, "),
        ": model is in fixed (vgg16) and in factors; it can only be one of them",
    ),
    (
        "a question twice",
        ("[scaling]", "[scaling, quality, scaling]"),
        ": duplicate in questions: scaling, quality, scaling",
    ),
    ("a level twice", ("[1, 2]", "[1, 2, 1]"), ": duplicate level in factors.devices_per_node: 1, 2, 1"),
    (
        "no framework",
        ("framework: paddle_collective, ", ""),
        ": framework is missing; give it in fixed or in factors",
    ),
    (
        "global batch under weak scaling",
        ("fixed: {", "fixed: {global_batch: 64, "),
        ": global_batch can't be given, because scaling is weak; give batch_per_device",
    ),
    (
        "batch per device under strong scaling",
        ("scaling: weak\nfixed: {", "scaling: strong\nfixed: {batch_per_device: 64, "),
        ": batch_per_device can't be given, because scaling is strong; give global_batch",
    ),
    (
        "no global batch under strong scaling",
        ("scaling: weak", "scaling: strong"),
        ": global_batch is missing, because scaling is strong; give it in fixed or in factors",
    ),
    (
        "include without a factor",
        ("baseline:", "include: [{model: vgg16}]\nbaseline:"),
        ": include[0] gives no value of devices_per_node; it must name every factor",
    ),
    (
        "comparison without a reference",
        ("[scaling]", "[scaling, comparison]"),
        ": reference is missing, because questions has comparison; give what to compare with",
    ),
    (
        "a reference without comparison",
        ("baseline:", "reference: {framework: paddle_collective}\nbaseline:"),
        ": reference is given, but questions does not contain comparison; add the question or leave it out",
    ),
    (
        "published without sources",
        ("[scaling]", "[scaling, published]"),
        ": published is missing, because questions has published; give the sources to show",
    ),
    (
        "published sources without the question",
        ("baseline:", "published: [tensorpack_multigpu]\nbaseline:"),
        ": published is given, but questions does not contain published; add the question or leave it out",
    ),
    (
        "a published source twice",
        ("[scaling]", "[published]\npublished: [tensorpack_multigpu, tensorpack_multigpu]"),
        ": duplicate source in published: tensorpack_multigpu, tensorpack_multigpu",
    ),
    (
        "unknown key of the reference",
        ("baseline:", "reference: {frame: paddle_ps}\nbaseline:"),
        f": unknown key reference.frame; did you mean framework? the keys are {NAMES}",
    ),
    (
        "an error in quick",
        ("baseline:", "quick: {factors: {devices_per_node: [0]}}\nbaseline:"),
        ": quick.factors.devices_per_node[0] is 0; it must be at least 1",
    ),
    (
        "a contradiction in quick",
        ("baseline:", "quick: {fixed: {model: vgg16}}\nbaseline:"),
        " (quick): model is in fixed (vgg16) and in factors; it can only be one of them",
    ),
]


@pytest.mark.parametrize(("change", "message"), [m[1:] for m in ERRORS], ids=[m[0] for m in ERRORS])
def test_an_error_is_one_message(tmp_path, change, message):
    assert change[0] in STUDY
    file = write(tmp_path, STUDY.replace(*change))
    with pytest.raises(StudyFileError) as caught:
        load_study(file)
    assert str(caught.value) == f"{file}{message.replace('{file}', str(file))}"


def test_several_errors_are_reported_at_once(tmp_path):
    file = write(tmp_path, STUDY.replace("weak", "week").replace("[1, 2]", "[]"))
    with pytest.raises(StudyFileError) as caught:
        load_study(file)
    assert str(caught.value).splitlines() == [
        f"{file}: scaling is 'week'; the choices are 'weak' or 'strong'",
        f"{file}: factors.devices_per_node is empty; it needs at least 1",
    ]


def test_a_missing_study_lists_those_there_are():
    with pytest.raises(StudyFileError) as caught:
        load_study("quickstrat")
    assert str(caught.value) == (
        f"there is no study 'quickstrat'; did you mean quickstart? params/studies has {STUDIES}"
    )


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(
        StudyFileError, match=r"there is no file .*nowhere\.yaml; give a path, or a name in params/studies"
    ):
        load_study(tmp_path / "nowhere.yaml")


def test_what_is_no_file_is_said_to_be_none(tmp_path):
    with pytest.raises(StudyFileError) as caught:
        load_study(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} is a folder, not a study file; give the path of a file, or a name in params/studies"
    )
    with pytest.raises(StudyFileError, match=r"^/dev/null is a device or a pipe, not a study file; give the path"):
        load_study("/dev/null")


def test_messages_name_files_from_the_projects_folder():
    assert load_study("quickstart").source == "params/studies/quickstart.yaml"


def test_a_file_that_is_not_utf_8_is_refused(tmp_path):
    file = tmp_path / "example.yaml"
    file.write_bytes(b"title: \xff")
    with pytest.raises(StudyFileError, match="not UTF-8"):
        load_study(file)


def test_a_name_must_be_fit_for_folders_and_the_quick_suffix(tmp_path):
    with pytest.raises(StudyFileError, match="made of lower-case letters, digits and underscores"):
        load_study(write(tmp_path, name="example-quick"))


def test_a_name_must_not_be_that_of_one_of_our_studies(tmp_path):
    file = write(tmp_path, name="quickstart")
    message = f"{file}: its name is that of params/studies/quickstart.yaml, and both would write to outputs/quickstart"
    with pytest.raises(StudyFileError, match=re.escape(message)):
        load_study(file)
