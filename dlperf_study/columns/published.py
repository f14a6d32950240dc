"""Columns on published numbers: what others measured and printed."""

from dlperf_study.columns.column import FLOAT, INT, STRING, Column, P


def _string(name: str, label: str, definition: str) -> Column:
    return Column(name, label, "", STRING, definition, P)


#: Where a number is printed. A cell of a table may hold several; each has a row of its own.
CELL = (
    _string("cell", "Cell", "unique: source/table/row/column, with #k for the k-th of several numbers in it"),
    _string("source", "Source", "name of the source: a pair of files in dlperf_study/published/sources"),
    _string("table", "Table", "name of the table in that source"),
    _string("row", "Row", "label of the row as printed; several are joined by a bar"),
    _string("column", "Column", "label of the column as printed"),
    _string("printed", "Printed", "text of the number exactly as printed; - where the source printed a dash"),
    _string("before", "Text before", "what is printed in the cell between the number before and this one"),
    _string("after", "Text after", "what is printed in the cell after this number, up to the text before the next"),
)

NUMBER = (
    _string("metric", "Metric", "what the number is: a name in dlperf_study/published/source.py"),
    Column(
        "value",
        "Value",
        "",
        FLOAT,
        "the printed number in the metric's unit; per cent are fractions, a : b is a / b",
        P,
    ),
    _string("unit", "Unit", "unit of the value"),
    Column(
        "resolution",
        "Resolution",
        "",
        FLOAT,
        "what one unit of the last printed digit is worth in the value; of a : b, one unit of b",
        P,
    ),
    _string("scope", "Scope", "what the number is of: job (all devices) or rank (one worker)"),
    _string("role", "Role", "result, or working: run lists, profiles, sums, and what repeats a result"),
    _string("estimator", "Estimator", "median, mean, run (of one repetition), one value, or not stated"),
    Column("runs", "Runs", "", INT, "published repetitions of this cell's number; 0 where none is printed", P),
    _string("runs_of", "Run of", "cell of the table that summarises the run; missing where no table does"),
    _string("baseline", "Baseline cell", "cell of the number that a speedup or an efficiency is relative to"),
    _string("series", "Line", "what may be compared by devices: same source, table, program and configuration"),
)

WHO = (
    _string("program", "Program", "code that was run"),
    _string("extra", "Besides", "what else tells it from programs of the same name, in the source's words"),
    _string("mode", "Mode", "way to exchange gradients, in the source's words"),
    _string("images", "Images", "made up, or read from files"),
    _string("scaling", "Scaling", "weak: batch per device fixed; strong: global batch fixed"),
    Column("sequence_length", "Sequence length", "tokens", INT, "tokens of one sample", P),
    Column(
        "samples_per_task",
        "Samples per task",
        "samples",
        INT,
        "samples that a worker of ElasticDL fetches at once",
        P,
    ),
    _string("instance", "Instance", "machine of a cloud, by its name there"),
    _string("hardware", "Hardware", "machines as the source describes them"),
    _string("software", "Software", "versions as the source describes them"),
    _string("inferred", "Inferred", "columns whose values its source does not state, divided by commas"),
)

#: Levels of our parameters that mean the same as the source's own words.
COUNTERPARTS = (
    _string("our_framework", "Our framework", "framework of ours that exchanges gradients the same way"),
    _string("our_memory_format", "Our memory format", "memory format with which ours asks the same question"),
    _string("our_strategy", "Our strategy", "strategy of ours that exchanges gradients the same way"),
    *(
        Column(f"our_{name}", f"Our {words}", "", INT, f"{words} with which ours asks the same question", P)
        for name, words in (
            ("nodes", "nodes"),
            ("devices_per_node", "devices per node"),
            ("threads_per_device", "threads per device"),
        )
    ),
)
