from dlperf_study.core.terminal import progress_display, text_table


def test_cells_are_shown_as_they_are_and_columns_as_wide_as_their_widest(snapshot, refused):
    assert text_table(("#", "model", ""), [("1", "resnet50", "baseline"), ("10", "vgg16", "")]) == snapshot
    assert text_table(("", ""), [("a", "b")]) == "a  b"
    cells = ("[bold]no markup[/bold]", "long " * 100 + "end")
    assert text_table(("first", "second"), [cells]).splitlines()[1] == "  ".join(cells)
    assert text_table(("a", "b"), [("模型", "x"), ("m", "y")]).splitlines()[1:] == ["模型  x", "m     y"]
    assert text_table(("", ""), [("first\nsecond", "b"), ("c", "")]) == "first second  b\nc"
    with refused(ValueError):
        text_table(("a", "b"), [("1",)])


def test_the_progress_display_is_silent_where_the_output_is_no_terminal(capsys):
    with progress_display("runs") as display:
        display.advance(display.add_task("measuring", total=2))
        print("one line")
    assert capsys.readouterr().out == "one line\n"


def test_the_progress_display_shows_what_is_done_and_the_time_left(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    display = progress_display("runs")
    task = display.add_task("measuring", total=4)
    display.advance(task)
    with display.console.capture() as captured:
        display.console.print(display.get_renderable())
    assert "1 of 4 runs" in captured.get()
    assert "left" in captured.get()
