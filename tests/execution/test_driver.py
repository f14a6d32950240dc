from dlperf_study.execution.driver import Progress


def test_what_is_said() -> None:
    printed: list[str] = []
    progress = Progress({"a": 1, "b": 3}, printed.append)
    progress.start("a")
    progress.end("a", "fine")
    progress.start("b")
    progress.end("b", "run 2 failed: why")
    assert printed == [
        "[1/2] a: 1 run …",
        "    fine (0:00 elapsed, about 0:00 left)",
        "[2/2] b: 3 runs …",
        "    run 2 failed: why (0:00 elapsed, about 0:00 left)",
    ]


def test_two_at_once_are_told_apart() -> None:
    printed: list[str] = []
    progress = Progress({"a": 1, "b": 3}, printed.append)
    progress.start("a")
    progress.start("b")
    progress.report("b", "waits")
    progress.report("a", "runs")
    progress.end("a", "fine")
    progress.end("b", "fine")
    assert printed == [
        "[1/2] a: 1 run …",
        "[2/2] b: 3 runs …",
        "    waits",
        "    a: runs",
        "    fine (0:00 elapsed, about 0:00 left)",
        "    b: fine (0:00 elapsed, about 0:00 left)",
    ]
