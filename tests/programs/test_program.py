"""What a command becomes, and what arithmetic of placeholders is worth."""

import pytest

from dlperf_study.study.program import Program, evaluated, program_values
from dlperf_study.study.secrets import secrets_in

COMMAND = "torchrun --nnodes {nodes} --master-port {port_0} 'my train.py' --width={width} --fast {fast} --json '{{}}'"


def test_placeholders_become_values_and_those_of_the_launcher_stay():
    values = {"nodes": 2, "width": 8, "fast": True}
    assert Program("p", ".", COMMAND).argv(values) == (
        *("torchrun", "--nnodes", "2", "--master-port", "{port_0}", "my train.py"),
        *("--width=8", "--fast", "True", "--json", "{}"),
    )


def test_a_program_says_how_it_writes_false_and_true():
    program = Program("p", ".", "x --fast={fast}", booleans=("0", "1"))
    assert program.argv({"fast": False}) == ("x", "--fast=0")
    assert program.argv({"fast": True}) == ("x", "--fast=1")


def test_settings_are_the_placeholders_that_only_a_study_knows():
    program = Program("p", ".", COMMAND, environment={"A": "{depth}"}, tokens_per_step="{global_batch} * {length}")
    assert program.settings == ("nodes", "width", "fast", "depth", "length")


@pytest.mark.parametrize(
    ("expression", "value"),
    [("{a} * {b}", 6), ("({a} + 1) // 2", 1), ("12", 12), ("{a} / {b} - 1", 2 / 3 - 1), ("-{a} + 5", 3)],
)
def test_arithmetic(expression, value):
    assert evaluated(expression, {"a": 2, "b": 3}) == pytest.approx(value)


@pytest.mark.parametrize(
    "expression", ["{a} ** 9", "{c}", "{name}", "__import__('os')", "{a} *", "{a} / 0", "{flag} + 1"]
)
def test_anything_else_is_no_amount_of_work(expression):
    with pytest.raises(ValueError, match=r".+"):
        evaluated(expression, {"a": 2, "name": "x", "flag": True})


def test_what_follows_from_a_configuration():
    values = program_values({"nodes": 2, "devices_per_node": 4, "batch_per_device": 8})
    assert (values["world_size"], values["processes"], values["global_batch"]) == (8, 8, 64)
    assert "global_batch" not in program_values({"nodes": 2, "devices_per_node": 4, "batch_per_device": 0})


def test_computation_steps_are_a_number_where_they_follow_from_others():
    values = {"nodes": 1, "devices_per_node": 1, "measured_steps": 7}
    assert program_values({**values, "compute_only_steps": -1})["compute_only_steps"] == 7
    assert program_values({**values, "compute_only_steps": 0})["compute_only_steps"] == 0


def test_the_digest_is_that_of_files_and_declaration_and_not_of_where_they_are():
    first, second = Program("p", "/a", "x"), Program("p", "/b", "x", commit="c", dirty=True)
    assert first.digest_with("f") == second.digest_with("f")
    assert first.digest_with("f") != first.digest_with("g")
    assert first.digest_with("f") != Program("p", "/a", "y").digest_with("f")


@pytest.mark.parametrize(
    ("arguments", "secrets"),
    [
        (["--api-key=abcdef"], ["--api-key"]),
        (["--hf_token", "hf_abcdef"], ["--hf_token"]),
        (["WANDB_API_KEY=abcdef"], ["WANDB_API_KEY"]),
        (["--db-password=abcdef", "--passwd", "abcdef"], ["--db-password", "--passwd"]),
        (["--credential=abcdef", "--credentials", "abcdef"], ["--credential", "--credentials"]),
        (["--apikey=abcdef", "--client-secret", "abcdef"], ["--apikey", "--client-secret"]),
        *([[f"--{kind}-key=abcdef"], [f"--{kind}-key"]] for kind in ("access", "secret", "private", "auth", "license")),
        (["--sort-key=abcdef", "--key=abcdef", "--key-api=abcdef"], []),
        (["--db", "mysql://user:word@host/x"], ["a URL with a password"]),
        (["--tokenizer", "gpt2", "--num-key-value-heads", "8", "--max_tokens=5000", "--token", "50257"], []),
        (["--token", "--fast"], []),
    ],
)
def test_secrets_of_a_command_line(arguments, secrets):
    assert secrets_in(arguments) == secrets


def test_a_program_is_read_as_it_was_written():
    program = Program("p", "/a", "x {y}", environment={"A": "b"}, data=("c",), booleans=("0", "1"), digest="d")
    assert Program.from_json(program.as_json()) == program
