import pytest

from dlperf_study.terminal import progress_display, text_table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert text_table(("#", "model", ""), [("1", "resnet50", "baseline"), ("10", "vgg16", "")]) == (
        "#   model\n1   resnet50  baseline\n10  vgg16"
    )


def test_without_headings_there_are_rows_only() -> None:
    assert text_table(("", ""), [("a", "b")]) == "a  b"


def test_cells_are_shown_as_they_are_however_long() -> None:
    cells = ("[bold]no markup[/bold]", "long " * 100 + "end")
    assert text_table(("first", "second"), [cells]).splitlines()[1] == "  ".join(cells)


def test_wide_characters_take_two_columns() -> None:
    assert text_table(("a", "b"), [("模型", "x"), ("m", "y")]).splitlines()[1:] == ["模型  x", "m     y"]


def test_a_line_break_in_a_cell_does_not_break_the_row() -> None:
    assert text_table(("", ""), [("first\nsecond", "b"), ("c", "")]) == "first second  b\nc"


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="row of 1 cells under 2 headings"):
        text_table(("a", "b"), [("1",)])


def test_the_progress_display_is_silent_where_the_output_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_display("runs") as display:
        display.advance(display.add_task("measuring", total=2))
        print("one line")
    assert capsys.readouterr().out == "one line\n"


def test_the_progress_display_shows_what_is_done_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    display = progress_display("runs")
    task = display.add_task("measuring", total=4)
    display.advance(task)
    with display.console.capture() as captured:
        display.console.print(display.get_renderable())
    assert "1 of 4 runs" in captured.get()
    assert "left" in captured.get()
