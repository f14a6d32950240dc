"""Tables for the checks of conventions and copies, and what each examines: see ``test_checks.py``."""

from typing import Any

from tests.audit.tables import Cases, Row, number, throughput


def _share(share: str, flops: str, world_size: int = 8, **facts: Any) -> list[Row]:
    both = {"device_name": "H100", **facts}
    flops_row = number("device_flops", flops, world_size, **both)
    flops_row |= {"value": flops_row["value"] * 1e12, "resolution": flops_row["resolution"] * 1e12}
    return [number("mfu", share, world_size, **both), flops_row]


def _of_token(tokens: str, teraflops: str, model: str, **facts: Any) -> list[Row]:
    flops_row = number("device_flops", teraflops, 8, model=model, **facts)
    flops_row |= {"value": flops_row["value"] * 1e12, "resolution": flops_row["resolution"] * 1e12}
    return [flops_row, number("tokens_per_second_per_device", tokens, 8, model=model, **facts)]


def _network(parameters: float, layers: int, hidden: int, size: int, **facts: Any) -> Row:
    sizes = {"layers": float(layers), "hidden_size": float(hidden), "parameters": parameters, "parameters_step": 1e6}
    return throughput("100.0", size, **sizes, **facts)


#: DLPerf's GPT report: 0.498, 1.539 and 1.840 are billions of 2^30.
_BINARY = [_network(0.498e9, 16, 1536, 1), _network(1.539e9, 24, 2304, 2), _network(1.840e9, 16, 3072, 4)]
_DECIMAL = [_network(0.535e9, 16, 1536, 1), _network(1.653e9, 24, 2304, 2), _network(1.976e9, 16, 3072, 4)]


def _results(model: str, *texts: str, world_size: int = 8) -> list[Row]:
    return [throughput(text, world_size, model=model, cell=f"{model}/{text}/{world_size}") for text in texts]


CASES: Cases = {
    "implied_peaks": {
        "the peak of a device": (".", _share("40.0%", "396")),
        "a peak with sparsity": ("E", _share("20.0%", "396")),
        "that of another device": ("E", _share("40.0%", "124.8")),
        "one device for all": ("E", _share("320%", "396")),
        "no known peak": ("E", _share("40.0%", "300")),
        "an unknown device": (".", _share("40.0%", "300", device_name="X1")),
        "an unknown device, one row of another peak": (
            "..E",
            [
                row
                for size in (1, 2, 4)
                for row in _share("40.0%", "300" if size < 4 else "350", size, device_name="X1")
            ],
        ),
    },
    "model_flops": {
        "right": (".", _of_token("12036", "697", "LLAMA3-8B")),
        "ten times too small": ("W", _of_token("42560", "554", "Nemotron-22B")),
        "ten times too large": ("E", _of_token("153", "738", "LLAMA3-70B", sequence_length=8192)),
        "attention over long sequences": (".", _of_token("5506", "260", "mpt-1b", sequence_length=65536)),
        "a mixture of experts": ("N", _of_token("33024", "1077", "gpt-oss-120B")),
        "a mixture that is named": ("", _of_token("9000", "200", "Mixtral 8x7B")),
        "no size in the name": ("", _of_token("9000", "200", "bert-large")),
    },
    "parameters": {
        "right": (".", _DECIMAL),
        "billions of 2^30": ("E", _BINARY),
        "a Llama": (".", [_network(6.738e9, 32, 4096, 1)]),
        "the shard of a device": ("E", [_network(0.842e9, 32, 4096, 8, tp="8")]),
        "another network": ("W", [_network(60e9, 32, 4096, 8)]),
    },
    "copied_rows": {
        "the same results": ("W", [*_results("7b", "2744", "2163"), *_results("13b", "2744", "2163")]),
        "the same three results": (
            "E",
            [*_results("7b", "2744", "2163", "2160"), *_results("13b", "2744", "2163", "2160")],
        ),
        "one result is the same by chance": ("..", [*_results("7b", "2744", "2163"), *_results("13b", "2744", "1605")]),
        "equal throughputs of more devices": (
            "W",
            [*_results("7b", "355.63"), *_results("7b", "355.63", world_size=16)],
        ),
    },
}
