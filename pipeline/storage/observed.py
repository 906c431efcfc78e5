"""Counts rows while Spark processes them, if possible without a second pass. It never waits forever.

`Observation.get` waits until Spark reports the counts. Adaptive execution removes the counter from the plan
of a table that turns out to be empty, and Spark then reports nothing (SPARK-54620).
"""

from collections.abc import Callable
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, Observation

_REPORT_MS: Final = 10_000
"""How long Spark may take to deliver the reports of a finished action."""


class Observed:
    """Counts of a table's rows, taken by the first action on `table`."""

    def __init__(self, table: DataFrame, **counts: Column) -> None:
        self._counted: Final = table
        self._counts: Final = [count.alias(name) for name, count in counts.items()]
        self._observation: Final = Observation()
        self.table: Final = table.observe(self._observation, *self._counts)
        """The table, to be used in the action."""
        self._found: dict[str, Any] | None = None

    @property
    def is_known(self) -> bool:
        """Whether get() has returned the counts already."""
        return self._found is not None

    def get(self, copy: Callable[[], DataFrame | None] | None = None) -> dict[str, Any]:
        """Return the counts. Call it after the action; it computes the table again if Spark reported none, or
        reads the `copy` that the action has written.
        """
        if self._found is None:
            self._found = self._reported() or self._count(copy() if copy else None)
        return self._found

    def _count(self, copy: DataFrame | None) -> dict[str, Any]:
        table = self._counted if copy is None else copy
        return table.agg(*self._counts).collect()[0].asDict()

    def _reported(self) -> dict[str, Any]:
        context: Any = self._counted.sparkSession.sparkContext
        try:
            context._jsc.sc().listenerBus().waitUntilEmpty(_REPORT_MS)
        except Py4JJavaError:
            return {}
        observation: Any = self._observation._jo
        return dict(self._observation.get) if observation.future().isCompleted() else {}
