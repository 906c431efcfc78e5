"""The report of layers, as it is sent to the commands."""

import pytest

from proxy.errors import BadResponse
from proxy.quota.limits.resources import BROKER, DEFAULT_RESOURCE, TOPIC, ConfigResource
from proxy.store.layer_report import (
    ConfigReport,
    LayerValue,
    add_resource,
    decode_report,
    encode_report,
    layer_values,
)
from proxy.store.layers import Layers, Temporary

ORDERS, ANY_BROKER = ConfigResource(TOPIC, "orders"), ConfigResource(BROKER, DEFAULT_RESOURCE)
RATE, TOTAL = "producer.byte.rate", "total.bytes.in.per.sec.threshold"


def test_every_layer_is_reported_in_order_of_precedence() -> None:
    layers: Layers[ConfigResource, str] = Layers()
    layers.file.set_lasting(ORDERS, RATE, "1")
    layers.file.set_temporary(ORDERS, RATE, Temporary("2", 10))
    layers.tools.set_lasting(ORDERS, RATE, None)
    layers.tools.set_temporary(ORDERS, RATE, Temporary("4", 11))
    layers.tools.set_lasting(ANY_BROKER, TOTAL, "9")
    layers.file.set_temporary(ConfigResource(TOPIC, "ended"), RATE, Temporary("2", 5))
    report = ConfigReport(names={}, topics={}, brokers={})
    for resource in dict.fromkeys([*layers.file.entities(), *layers.tools.entities()]):
        add_resource(report, resource, layers, 5)
    assert report.topics == {
        "orders": {
            RATE: [
                LayerValue("tools", "4", 11),
                LayerValue("tools", None),
                LayerValue("file", "2", 10),
                LayerValue("file", "1"),
            ]
        }
    }
    assert report.brokers == {DEFAULT_RESOURCE: {TOTAL: [LayerValue("tools", "9")]}}
    assert decode_report(encode_report(report)) == report


def test_entity_without_values() -> None:
    assert layer_values(Layers[ConfigResource, str](), ORDERS, 0) == {}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"topics": 1}'])
def test_what_is_no_report_is_an_error(text: str) -> None:
    with pytest.raises(BadResponse):
        decode_report(text)
