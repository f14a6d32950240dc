"""What a column of the dataset is."""

from dataclasses import dataclass
from enum import StrEnum


class Table(StrEnum):
    """The tables of a study's dataset, and that of the published figures."""

    RUNS = "runs"
    STEPS = "steps"
    CONFIGURATIONS = "configurations"
    DIAGNOSTICS = "diagnostics"
    PUBLISHED = "published"


#: The tables that ``collect`` writes for a study.
DATASET_TABLES = (Table.RUNS, Table.STEPS, Table.CONFIGURATIONS, Table.DIAGNOSTICS)


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
    tables: tuple[Table, ...]

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return self.dtype in (Dtype.INTEGER, Dtype.OPTIONAL_INTEGER, Dtype.FLOAT)

    def dtype_in(self, table: Table) -> Dtype:
        """Return its type in a table; strings repeat on every step, and publications leave numbers out."""
        if table is Table.STEPS and self.dtype is Dtype.STRING:
            return Dtype.CATEGORY
        if table is Table.PUBLISHED and self.dtype is Dtype.INTEGER:
            return Dtype.OPTIONAL_INTEGER
        return self.dtype


#: Short names, so that a line of the registry stays a line.
R, C = (Table.RUNS,), (Table.CONFIGURATIONS,)
RC = (Table.RUNS, Table.CONFIGURATIONS)
RS = (Table.RUNS, Table.STEPS)
PUBLISHED = (Table.PUBLISHED,)
RP, RCP = (Table.RUNS, *PUBLISHED), (*RC, *PUBLISHED)
ALL = DATASET_TABLES
S = (Table.STEPS,)
P = (Table.DIAGNOSTICS,)
STRING, INT, MAYBE_INT, FLOAT = Dtype.STRING, Dtype.INTEGER, Dtype.OPTIONAL_INTEGER, Dtype.FLOAT
FLAG, MAYBE_FLAG = Dtype.FLAG, Dtype.OPTIONAL_FLAG
