"""What is a secret in a command line, and in what a program prints."""

import re
import time

import pytest

from dlperf_study.study import secrets
from dlperf_study.study.secrets import WITHHELD, redacted, secrets_in

#: Made for these tests: each has the form of a key, and none is one.
RANDOM = "q7Zk2Lw9Xc4Vb8Nm1Rt6"
REJECTED = [
    ["--wandb-key", RANDOM],
    [f"--key={RANDOM}"],
    ["--pass", "hunter2x"],
    ["--db-pass", RANDOM],
    ["-p", RANDOM],
    ["--secret-id", "abcd-efgh"],
    ["--secret_access", "abcdefgh"],
    ["bash", "-c", f"python train.py --token {RANDOM}"],
    ["sh", "-c", "export HF_TOKEN=abcdefgh && python train.py"],
    ["--config", '{"lr": 0.1, "api_key": "abcdefgh"}'],
    ["--config", '{"wandb": {"auth": [{"password": "abcdefgh"}]}}'],
    ["curl", "-H", f"Authorization: Bearer {RANDOM}"],
    ["curl", "-H", f"X-Api-Key: {RANDOM}"],
    ["curl", "-u", "me:pa55word"],
    ["--data", f"https://store.example.com/x?X-Amz-Signature={RANDOM}"],
    ["--data", f"https://store.example.com/x?sv=1&sig={RANDOM}"],
    ["--url", "postgres://me:pa55@db/x"],
    ["--hook", "https://hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnop"],
    ["--connection", f"AccountName=x;AccountKey={RANDOM}=="],
    ["--new-password", "abcdefgh"],
]
ACCEPTED = [
    ["ssh", "-p", "22", "host"],
    ["-p", "outputs/run12Ab"],
    ["--pass", "2"],
    ["--ir-pass", "fuse_ops"],
    ["--key", "image"],
    ["--num-key-value-heads", "8"],
    ["--tokenizer", "gpt2", "--max-tokens", "4096"],
    ["-u", "train.py"],
    ["--rdzv-endpoint", "node1:29500"],
    ["--config", '{"lr": 0.1, "max_tokens": 4096}'],
    ["--name", "sk-learn-forest"],
    ["--model", "hf_mobilenetv2"],
    ["--model", "sk-resnet50imagenet"],
    ["--output", "runs/hf_2024-01-15_001"],
    ["--prompt", "Write about the secret garden"],
    ["--notes", "token embedding size"],
    ["-p", "bs32-lr0.1-run1"],
    ["--monitor-key", "val_accuracy_top1"],
    ["--key", "imagenet1k-train"],
    ["docker", "run", "-u", "root:video", "image"],
    ["--data", "https://store.example.com/x?version=3"],
    ["--pad-token", "[PAD]", "--eos-token", "</s>", "--mask_token", "<mask>"],
    ["--url", "http://localhost:8080/a@b"],
]


@pytest.mark.parametrize("arguments", REJECTED, ids=" ".join)
def test_a_secret_in_a_command_line(arguments):
    assert secrets_in(arguments)
    assert RANDOM not in " ".join(secrets_in(arguments))


@pytest.mark.parametrize("arguments", ACCEPTED, ids=" ".join)
def test_no_secret_in_a_command_line(arguments):
    assert secrets_in(arguments) == []


@pytest.mark.parametrize("prefix", ["ASIA", "gho_", "ghs_", "xoxp-", "nvapi-", "npm_", "pypi-", "ya29.", "hf_", "eyJ"])
def test_a_key_of_a_service(prefix):
    key = prefix + RANDOM
    assert redacted(f"using {key}, and on") == f"using {WITHHELD}, and on"
    assert secrets_in([f"--x={key}"]) == ["the key of a service"]
    assert redacted(f"a{key}") == f"a{key}", "a word that ends so begins otherwise"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("fetch https://me:pa55@host/x now", f"fetch https://{WITHHELD}@host/x now"),
        (f"> authorization: Bearer {RANDOM}\n", f"> authorization: {WITHHELD}\n"),
        (f'{{"x-api-key": "{RANDOM}"}}', f'{{"x-api-key": "{WITHHELD}"}}'),
        (f"GET https://b/x?a=1&X-Amz-Signature={RANDOM}&c=2", f"GET https://b/x?a=1&X-Amz-Signature={WITHHELD}&c=2"),
        ("sk-learn-forest at https://host/x?page=3", "sk-learn-forest at https://host/x?page=3"),
        ("tokens/s: 123456.5, time: 12:30:05", "tokens/s: 123456.5, time: 12:30:05"),
        ("ms per token: 12.345678 loss/token: 0.12345678", "ms per token: 12.345678 loss/token: 0.12345678"),
        ('"time_per_token": 0.00123456,', '"time_per_token": 0.00123456,'),
        ("pad_token: <|endoftext|>, key: attention", "pad_token: <|endoftext|>, key: attention"),
        ("Cookie: theme=dark; session=abc", f"Cookie: {WITHHELD}"),
        ("Namespace(lr=0.1, token='abcdefgh1234')", f"Namespace(lr=0.1, token='{WITHHELD}')"),
        ("db password: hunter22x, next", f"db password: {WITHHELD}, next"),
        ("https://me:pa/ss@host/x", f"https://{WITHHELD}@host/x"),
        ("at http://localhost:8080/a@b", "at http://localhost:8080/a@b"),
        ("unk_token=[UNK1]99", "unk_token=[UNK1]99"),
        (f"wandb: api key: {RANDOM}", f"wandb: api key: {WITHHELD}"),
        ("--password hunter2secret", f"--password {WITHHELD}"),
        (f"got Basic {RANDOM}", f"got Basic {WITHHELD}"),
        ("Basic resnet50_v1 and a basic_block12", "Basic resnet50_v1 and a basic_block12"),
        (f"-----BEGIN KEY-----\n{RANDOM * 3}\n", f"-----BEGIN KEY-----\n{WITHHELD}\n"),
        ("0" * 32 + "a" * 32, "0" * 32 + "a" * 32),
        ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",) * 2,
        ("vgg-basic cifar10_32x32", "vgg-basic cifar10_32x32"),
    ],
)
def test_what_a_program_prints_is_shown_without_secrets(line, shown):
    assert redacted(line) == shown


@pytest.mark.parametrize("unit", ["sk-", "eyJ-", "://a:", "token", "a:", "?sig=", "Authorization: ", "-k "])
def test_the_time_grows_with_the_length_alone(unit):
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        begun = time.process_time()
        redacted(text)
        secrets_in([text])
        return time.process_time() - begun

    assert seconds(400_000) < 8 * seconds(100_000) + 0.2


def test_a_value_that_is_all_digits_or_a_switch_is_no_secret():
    assert secrets_in(["--token", "50257", "--auth", "none", "--password=", "--api-key", "true"]) == []
    assert all(re.fullmatch(r"\S{3,}", prefix) for prefix in secrets.PREFIXES)


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [("DB_PASS", True), ("SERVICE_KEY", True), ("SORT_KEY", False), ("FLAX_PRNG_KEY", False), ("EOS_TOKEN", False)],
)
def test_the_name_of_a_variable_tells_a_secret(name, is_secret):
    assert secrets.names_secret(name) == is_secret
