"""A table as CSV, byte for byte as pyarrow's writer has it with quotes where needed, in half its time.

Most of that time goes into printing floats and quoting names, and a long table holds each of them many times: so each
is printed once. A missing value is empty.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

#: How many rows become text at once; an array of texts holds 2 GiB at most.
ROWS_AT_ONCE = 1 << 17
#: Where more than this share of the first values differ, finding the equal ones takes longer than printing them.
SAMPLE, DISTINCT_SHARE = 1 << 12, 0.5


def header(schema: pa.Schema) -> bytes:
    """Return the names of the columns as a line."""
    return ",".join(f'"{name}"' for name in schema.names).encode() + b"\n"


def lines(table: pa.Table) -> Iterator[pa.Buffer]:
    """Yield the rows of a table as lines, many at once."""
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        *texts, last = [_text(column) for column in batch.columns]
        last = pc.binary_join_element_wise(pc.fill_null(last, ""), "\n", "")
        joined = pc.binary_join_element_wise(*texts, last, ",", null_handling="replace")
        yield joined.buffers()[2]


def is_repetitive(column: pa.Array | pa.ChunkedArray) -> bool:
    """Say whether the first values of a column repeat each other."""
    some = column[:SAMPLE]
    return len(some.unique()) < DISTINCT_SHARE * len(some)


def _text(column: pa.Array) -> pa.StringArray:
    """Return the values of a column as they stand in a line; whole numbers are printed quicker than looked up."""
    kind = column.type
    if not pa.types.is_dictionary(kind) and not pa.types.is_integer(kind) and is_repetitive(column):
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, _text(column.dictionary)).cast(pa.string())
    text = column.cast(pa.string())
    is_name = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '""'), '"', "") if is_name else text
