"""Text in figures is text."""

from io import BytesIO

from matplotlib.figure import Figure

from dlperf_study.report.figures import style
from dlperf_study.report.figures.style import publication_style


def test_a_dollar_sign_in_a_name_is_no_formula() -> None:
    """Read as a formula, this name can't be drawn."""
    file = BytesIO()
    with publication_style():
        figure = Figure()
        figure.subplots().set_title(r"my$\frac$model")
        figure.savefig(file, format="svg")
    assert file.getvalue().startswith(b"<?xml")


def test_the_parts_of_a_step_have_colours_of_no_series():
    assert not {style.COMPUTATION, style.EXPOSED, style.EXCHANGE} & {*style.PALETTE}
