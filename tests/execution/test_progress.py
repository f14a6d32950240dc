from dlperf_study.execution.progress import Progress


def test_what_is_said() -> None:
    said: list[str] = []
    progress = Progress([1, 3], said.append)
    progress.starts("a")
    progress.ended("fine")
    progress.starts("b")
    progress.ended("run 2 failed: why")
    assert said == [
        "[1/2] a: 1 run …",
        "    fine (0:00 elapsed, about 0:00 left)",
        "[2/2] b: 3 runs …",
        "    run 2 failed: why (0:00 elapsed, about 0:00 left)",
    ]
