"""The event's columns are the proxy's, and the documentation lists every table's columns."""

from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pipeline import schema
from pipeline.inputs.documents import convert, read_yaml
from pipeline.inputs.prices import read_prices
from pipeline.inputs.tenants import read_tenants
from pipeline.transforms.events import checked_lines
from pipeline.transforms.reassignment import Cluster, plan
from proxy.telemetry.usage.events import VERSION, UsageEvent, encode
from tests.support.messages.usage_events import make_event

ROOT = Path(__file__).parent.parent.parent


def test_the_proxy_and_the_pipeline_agree_on_an_event() -> None:
    fields = {field.name: field for field in msgspec.structs.fields(UsageEvent)}
    assert list(fields) == schema.EVENT.names
    assert {name for name, field in fields.items() if field.type in (str | None, int | None)} == {
        field.name for field in schema.EVENT.fields if field.nullable
    }
    assert VERSION == schema.VERSION


def test_what_the_proxy_writes_is_an_event(spark: SparkSession) -> None:
    values = make_event(topic=None, partition=None, user='O"Neill\u2028', interval_start_ms=1_700_000_000_123)
    line = encode(UsageEvent(**values)).value.decode()
    (row,) = checked_lines(spark.createDataFrame([(line,)], "raw string")).collect()
    assert row.reason is None
    assert {name: row[name] for name in schema.EVENT.names} == values


@pytest.mark.parametrize(
    ("page", "table"),
    [
        ("usage-events.md", schema.EVENT),
        ("pipeline.md", schema.USAGE),
        ("pipeline.md", schema.THROTTLE),
        ("pipeline.md", schema.CHARGEBACK),
        ("pipeline.md", schema.INVOICES),
        ("pipeline.md", schema.INVOICE_FILES),
        ("pipeline.md", schema.REPLAY),
        ("pipeline.md", schema.HEADROOM),
        ("pipeline.md", schema.SKIPPED),
    ],
)
def test_the_documentation_has_the_columns(page: str, table: StructType) -> None:
    """`pipeline.schema.markdown(TABLE)` gives the table for the page."""
    table = table if table is schema.EVENT else schema.of_period(table)
    assert schema.markdown(table) in (ROOT / "docs" / page).read_text()


def test_the_example_of_prices_is_taken() -> None:
    assert read_prices(ROOT / "config/pipeline/prices.yaml").currency == "EUR"


def test_the_example_of_tenants_is_taken() -> None:
    found = read_tenants(ROOT / "config/pipeline/tenants.yaml").find("local", "alice", "billing")
    assert found.cost_center == "4711"


def test_the_example_of_a_move_is_feasible() -> None:
    file = ROOT / "config/pipeline/cluster.json"
    assert plan(convert(read_yaml(file), Cluster, file), within=7200, network=125e6).feasible
