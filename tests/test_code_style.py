"""The limits on how each room reads: `tools/code_style.py`."""

from tools import code_style

READABLE = '"""A module."""\nvalue = 1\n'
UNREADABLE = '"""A module."""\nvalue = [1 if each else 2 for each in ()]\n\n\ndef name_of():\n    """Return it."""\n'


def test_a_room_that_gets_worse_is_named(tmp_path):
    room = tmp_path / "dlperf_study" / "room"
    room.mkdir(parents=True)
    (room / "file.py").write_text(READABLE)
    limits = code_style.measure_rooms(tmp_path / "dlperf_study")
    (room / "file.py").write_text(UNREADABLE)
    messages = code_style.worse(code_style.measure_rooms(tmp_path / "dlperf_study"), limits)
    assert [message for message in messages if message.startswith("room:")] == [
        "room: conditional 166.7, above the recorded 0",
        "room: comprehension 166.7, above the recorded 0",
        "room: *_of 1, above the recorded 0",
        "room: docstring words 2, above the recorded 0",
    ]


def test_a_room_whose_lines_fell_is_no_worse(tmp_path):
    room = tmp_path / "dlperf_study" / "room"
    room.mkdir(parents=True)
    (room / "file.py").write_text(f"{READABLE}values = [each for each in ()]\n")
    limits = code_style.measure_rooms(tmp_path / "dlperf_study")
    (room / "file.py").write_text("values = [each for each in ()]\n")
    assert code_style.worse(code_style.measure_rooms(tmp_path / "dlperf_study"), limits) == []
