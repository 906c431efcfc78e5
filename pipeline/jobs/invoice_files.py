"""The files of a report's invoices, one for each tenant, in a folder that a run replaces as a whole."""

from types import TracebackType
from typing import Final, Self

from pyspark.sql import DataFrame, SparkSession

from pipeline.report.figures import Invoice
from pipeline.report.invoice_page import Billing, invoice_file, render_invoice
from pipeline.schema import INVOICE_FILES
from pipeline.storage.csv_files import write_csv
from pipeline.storage.filesystem import FilePath
from pipeline.transforms.events import with_period
from pipeline.window import Window

FOLDER: Final = "invoice-files"
INDEX: Final = "index.csv"


class InvoiceFiles:
    """A context manager. At its end, the folder has the invoices that were added, and a list of them. If it
    ends with an error, the folder is as it was.
    """

    def __init__(self, spark: SparkSession, out: str, billing: Billing, period: Window) -> None:
        self._spark: Final = spark
        self._billing: Final = billing
        self._period: Final = period
        self._rows: Final[list[tuple[object, ...]]] = []
        self.folder: Final = FilePath(spark, f"{out.rstrip('/')}/{FOLDER}")
        self._aside: Final = self.folder.beside("new")

    def __enter__(self) -> Self:
        self.folder.repair()
        self._aside.delete()
        return self

    def add(self, invoice: Invoice) -> None:
        """Write the file of an invoice."""
        tenant = invoice.cluster, invoice.user, invoice.client_id
        name = invoice_file(tenant)
        self._aside.child(name).create(render_invoice(invoice, self._billing))
        self._rows.append(
            (
                *tenant,
                invoice.name or None,
                invoice.cost_center or None,
                invoice.use.amount,
                self._billing.currency,
                name,
            )
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                write_csv(self._index(), str(self._aside.child(INDEX)))
                self._aside.replace(self.folder)
        finally:
            self._aside.delete()

    def _index(self) -> DataFrame:
        rows = self._spark.createDataFrame(self._rows, INVOICE_FILES)
        return with_period(rows, self._period)
