"""A picture of bars: well-formed, with every name and value, and to scale."""

from xml.etree import ElementTree

import pytest

from bench.output.bar_chart import LEFT, RIGHT, WIDTH, Bar, BarChart

SVG = "{http://www.w3.org/2000/svg}"


def test_each_bar_is_as_long_as_its_median() -> None:
    chart = BarChart("CPU <of> each", "haproxy = 1")
    chart.groups.append(("small", [Bar("haproxy", 0.9, 1.0, 1.1), Bar("proxy", 1.0, 2.0, 4.0)]))
    chart.groups.append(("large", [Bar("proxy", 0.5, 0.5, 0.5)]))
    root = ElementTree.fromstring(chart.svg())
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert texts[0] == "CPU <of> each (haproxy = 1)"
    assert texts[1:3] == ["haproxy", "proxy"], "one legend for all groups"
    assert texts[3:] == ["small", "1.00", "2.00", "large", "0.50"]
    bars = [each for each in root.iter(f"{SVG}rect") if each.get("x") == str(LEFT) and each.get("y") != "32"]
    scale = (WIDTH - LEFT - RIGHT) / 4.0
    widths = [float(each.get("width", "0")) for each in bars]
    assert widths == pytest.approx([scale, 2.0 * scale, 0.5 * scale], abs=0.06)
    assert len({each.get("fill") for each in bars}) == 2
