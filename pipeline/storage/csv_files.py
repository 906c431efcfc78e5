"""CSV files of tables (RFC 4180). No spreadsheet takes the name of a tenant in them for a formula.

Lines end with LF: Spark's writer replaces each LF in a cell by the line's end, so CRLF would change names.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from pipeline.storage.filesystem import FilePath

_OPTIONS: Final = {
    "header": "true",
    "escape": '"',
    "lineSep": "\n",
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
_ESCAPED: Final = "^[=+\\-@\\t\\r\\n'\uff1d\uff0b\uff0d\uff20]"
"""How a formula begins in a spreadsheet, also in full-width characters, and the apostrophe itself, so that
two texts never become one.
"""


def write_csv(table: DataFrame, path: str) -> str:
    """Write the table as one CSV file with a header, replacing an existing one; return its path.

    A cell of text that a spreadsheet could take for a formula gets an apostrophe before it. Null is an empty
    cell.
    """
    file = FilePath(table.sparkSession, path)
    parts = file.beside("parts")
    cells = table.select(*[_cell(table, name) for name in table.columns])
    cells.coalesce(1).write.mode("overwrite").options(**_OPTIONS).csv(str(parts))
    parts.only_file(".csv").replace(file)
    parts.delete()
    return str(file)


def _cell(table: DataFrame, name: str) -> Column:
    cell = F.col(f"`{name}`")
    if not isinstance(table.schema[name].dataType, StringType):
        return cell
    return F.when(cell.rlike(_ESCAPED), F.concat(F.lit("'"), cell)).otherwise(cell).alias(name)
