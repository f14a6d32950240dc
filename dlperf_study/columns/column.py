"""What a column of the dataset is."""

from dataclasses import dataclass, replace
from enum import StrEnum

from dlperf_study.wording import in_sentence


class TableName(StrEnum):
    """The tables of a study's dataset, and that of the published figures."""

    RUNS = "runs"
    STEPS = "steps"
    CONFIGURATIONS = "configurations"
    DIAGNOSTICS = "diagnostics"
    PUBLISHED = "published"


#: The tables that ``collect`` writes for a study.
DATASET_TABLES = (TableName.RUNS, TableName.STEPS, TableName.CONFIGURATIONS, TableName.DIAGNOSTICS)


class Dtype(StrEnum):
    """What a column holds, as pandas names it; capitalised types may be missing, as may strings and floats."""

    STRING = "str"
    CATEGORY = "category"
    INTEGER = "int64"
    OPTIONAL_INTEGER = "Int64"
    FLOAT = "float64"
    FLAG = "bool"
    OPTIONAL_FLAG = "boolean"


@dataclass(frozen=True)
class Column:
    """One column; the same name means the same thing in every table that has it."""

    name: str
    label: str
    unit: str
    dtype: Dtype
    definition: str
    tables: tuple[TableName, ...]

    @property
    def words(self) -> str:
        """Its label as words of a sentence."""
        return in_sentence(self.label)

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return self.dtype in (Dtype.INTEGER, Dtype.OPTIONAL_INTEGER, Dtype.FLOAT)

    def dtype_in(self, table: TableName) -> Dtype:
        """Return its type in a table; strings repeat on every step, and publications leave numbers out."""
        if table is TableName.STEPS and self.dtype is Dtype.STRING:
            return Dtype.CATEGORY
        if table is TableName.PUBLISHED and self.dtype is Dtype.INTEGER:
            return Dtype.OPTIONAL_INTEGER
        return self.dtype


#: Short names, so that a line of the registry stays a line.
R, C = (TableName.RUNS,), (TableName.CONFIGURATIONS,)
RC = (TableName.RUNS, TableName.CONFIGURATIONS)
RS = (TableName.RUNS, TableName.STEPS)
P = (TableName.PUBLISHED,)
RP, RCP = (TableName.RUNS, *P), (*RC, *P)
ALL = DATASET_TABLES
S = (TableName.STEPS,)
D = (TableName.DIAGNOSTICS,)
STRING, INT, MAYBE_INT, FLOAT = Dtype.STRING, Dtype.INTEGER, Dtype.OPTIONAL_INTEGER, Dtype.FLOAT
FLAG, MAYBE_FLAG = Dtype.FLAG, Dtype.OPTIONAL_FLAG


def with_interval(column: Column, of: str = "of the mean over runs") -> tuple[Column, ...]:
    """Return a measured column and the columns of its 95 % interval, which configurations have; ``of`` explains it."""
    columns = [column]
    for bound, end in (("low", "lower"), ("high", "upper")):
        name, label = f"{column.name}_{bound}", f"{column.label}, {bound}"
        definition = f"{end} bound of the 95 % interval {of}"
        columns.append(replace(column, name=name, label=label, definition=definition, tables=C))
    return tuple(columns)
