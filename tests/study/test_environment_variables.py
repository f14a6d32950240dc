"""Which variables reach training processes, and which of their values stand in evidence."""

import json

import pytest

from dlperf_study.study.environment_variables import COMMON_VARIABLES
from dlperf_study.study.secrets import WITHHELD, secrets_in
from dlperf_study.training.questions import passed_variables
from tests.machines import submissions

VARIABLES = passed_variables()


def test_what_is_passed_is_listed_and_travels_only_where_it_is_of_no_machine():
    given = {"PATH": "/bin", "NCCL_DEBUG": "INFO", "AWS_SECRET_ACCESS_KEY": "x", "PYTHONPATH": "x", "PATHS": "x"}
    assert VARIABLES.passed(given) == {"NCCL_DEBUG": "INFO", "PATH": "/bin"}
    given = {"PATH": "/bin", "HOME": "/root", "NCCL_DEBUG": "INFO", "SITE": "x", "OTHER": "y"}
    assert VARIABLES.travelling(given, ("SITE",)) == {"NCCL_DEBUG": "INFO", "SITE": "x"}
    given = {"HOROVOD_LOG_LEVEL": "debug"}
    assert (VARIABLES.passed(given), COMMON_VARIABLES.passed(given)) == (given, {})


def test_what_a_study_decides_is_not_passed():
    given = {
        "HOROVOD_CYCLE_TIME": "50",
        "HOROVOD_TIMELINE_MARK_CYCLES": "1",
        "OMP_NUM_THREADS": "4",
        "OMP_PLACES": "cores",
    }
    assert VARIABLES.passed(given) == {"OMP_PLACES": "cores"}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("NCCL_DEBUG", True),
        ("PATH", True),
        ("SITE", False),
        ("WANDB_API_KEY", False),
        # A prefix that libraries read does not make a value harmless.
        ("HOROVOD_SECRET_KEY", False),
        ("OMP_DATABASE_URL", False),
        ("NCCL_Auth", False),
        ("NCCL_COOKIE", False),
        ("GLOO_BEARER", False),
        ("TF_CPP_VMODULE", True),
    ],
)
def test_values_that_may_be_secret_are_withheld(name, shown):
    assert VARIABLES.recorded({name: "value"}) == {name: "value" if shown else WITHHELD}
    assert (
        "value"
        in submissions.submission("local", "/runs/1", (), 0, environment={name: "value"}, variables=VARIABLES).as_json()
    ) is shown


@pytest.mark.parametrize("address", ["http://me:pa55@proxy:3128", "me:pa55@proxy:3128"])
def test_an_address_with_a_password_is_withheld_whatever_its_name(address):
    assert VARIABLES.recorded({"NCCL_NET": address}) == {"NCCL_NET": WITHHELD}
    assert VARIABLES.recorded({"NCCL_NET": "http://proxy:3128"}) == {"NCCL_NET": "http://proxy:3128"}
    assert VARIABLES.redacted(f"can't reach {address}", {"NCCL_PROXY": address}) == f"can't reach {WITHHELD}"


@pytest.mark.parametrize("value", ["true", "1000", "-1.5", "auto"])
def test_a_switch_or_a_small_number_of_an_unknown_variable_stays_in_a_log(value):
    assert VARIABLES.recorded({"NCCL_FUTURE": value}) == {"NCCL_FUTURE": WITHHELD}
    assert VARIABLES.redacted(f"step {value}", {"NCCL_FUTURE": value}) == f"step {value}"


@pytest.mark.parametrize("shown", [repr, json.dumps, str])
def test_a_value_of_several_lines_is_replaced_however_it_is_printed(shown):
    value = "first k4Zq part\nsecond m7Tx part\n"
    printed = VARIABLES.redacted(f"key {shown(value)}", {"OTHER_KEY": value})
    assert "k4Zq" not in printed
    assert "m7Tx" not in printed


def test_the_shortest_secret_is_replaced_and_what_is_shorter_is_part_of_many_words():
    given = {"API_KEY": "k4Zq", "OTHER_KEY": "k4Z"}
    assert VARIABLES.redacted("key k4Zq, and k4Z in k4Zebra", given) == f"key {WITHHELD}, and k4Z in k4Zebra"
    assert secrets_in(["--api-key", "k4Zq"]) == ["--api-key"]
    assert secrets_in(["--api-key", "k4Z"]) == []


#: Keys as services give them, none of which is one.
SERVICE_KEYS = (
    "sk-proj-" + "a1B2" * 9,
    "hf_" + "aB3d" * 8,
    "ghp_" + "aB3d" * 9,
    "github_pat_" + "aB3d" * 9,
    "glpat-" + "aB3d" * 5,
    "AKIA" + "AB3D" * 4,
    "AIza" + "aB3d" * 9,
    "xoxb-" + "123-" * 5,
    "eyJ" + "aB3d" * 5 + ".eyJ" + "aB3d" * 5 + "." + "aB3d" * 9,
)


@pytest.mark.parametrize("key", SERVICE_KEYS)
def test_a_key_of_a_service_is_withheld_wherever_it_is(tmp_path, key):
    assert secrets_in(["--project", key]) == secrets_in([f"--project={key}"]) == ["the key of a service"]
    assert VARIABLES.recorded({"NCCL_NET": key}) == {"NCCL_NET": WITHHELD}
    printed = f"login with '{key}' done"
    assert VARIABLES.redacted(printed, {}) == f"login with '{WITHHELD}' done"
    log = tmp_path / "log"
    log.write_text(printed)
    VARIABLES.redact_file(log, {})
    assert log.read_text() == f"login with '{WITHHELD}' done"


@pytest.mark.parametrize("name", ["WANDB_KEY", "OPENAI_KEY", "--ssh_passphrase", "+logger.api_key"])
def test_names_of_keys(name):
    assert secrets_in([f"{name}=abcdef"]) == [name]


@pytest.mark.parametrize("name", ["--db-pwd", "REDIS_AUTH", "--auth", "GLOO_BEARER", "--session_cookie", "--cookies"])
def test_names_of_secrets_by_their_last_word(name):
    assert secrets_in([f"{name}=abcdef"]) == [name]
    assert secrets_in([f"{name}=true"]) == secrets_in([name, "none"]) == []


@pytest.mark.parametrize("name", ["--author", "--authors", "--auth-mode", "--cookie-policy", "PWD", "--forward"])
def test_names_that_contain_a_word_of_secrets_are_none(name):
    assert secrets_in([f"{name}=/home/abcdef"]) == []


@pytest.mark.parametrize(
    "word",
    [
        "task-aware-pretraining-of-models-with-many-words",
        "sk-learn-experiment-of-2024",
        "hf_dataset",
        "sk-1",
        "AKIAN",
        "--num-key-value-heads=8888",
    ],
)
def test_a_word_that_begins_as_a_key_is_none(word):
    assert secrets_in(["--name", word]) == []
    assert VARIABLES.redacted(word, {}) == word
