"""Pictures of lines over time."""

from xml.etree import ElementTree

from bench.output.line_chart import HEIGHT, INK, LEFT, RIGHT, TOP, WIDTH, Line, LineChart

SVG = "{http://www.w3.org/2000/svg}"


def points(chart: LineChart) -> list[list[tuple[float, float]]]:
    lines = ElementTree.fromstring(chart.svg()).findall(f"{SVG}polyline")
    texts = [line.attrib["points"].split() for line in lines]
    return [[(float(x), float(y)) for x, y in (text.split(",") for text in each)] for each in texts]


def test_lines_are_drawn_to_scale() -> None:
    chart = LineChart("title", "MB/s", 2.0, [Line("a", [0.0, 1.0, 2.0], "red"), Line("b", [9.0], "blue")])
    (first, middle, last), (high,) = points(chart)
    assert (first[0], last) == (LEFT, (WIDTH - RIGHT, TOP))
    assert middle == ((first[0] + last[0]) / 2, (first[1] + last[1]) / 2)
    assert first[1] < HEIGHT
    assert high == (LEFT, TOP), "a value above the axis is drawn at its end"


def test_names_and_marks_are_shown() -> None:
    chart = LineChart("a < b", "MB/s", 1.0, [Line("one & two", [1.0], "red")], [(0.0, "starts")])
    found = [text.text for text in ElementTree.fromstring(chart.svg()).findall(f"{SVG}text")]
    assert {"a < b", "one & two", "starts"} <= set(found)


def test_a_dark_page_has_a_dark_picture() -> None:
    picture = ElementTree.fromstring(LineChart("title", "", 1.0, [Line("a", [1.0], INK)]).svg())
    style = picture.find(f"{SVG}style")
    assert style is not None
    assert f'[stroke="{INK}"]' in (style.text or "")
    assert picture.find(f"{SVG}rect[@class='paper']") is not None
