import weakref

from proxy.config.frozen import compact
from proxy.config.settings import load

MADE = []
ALIVE = weakref.WeakSet()


class Part:
    """Notes how many of its kind are there whenever one is made."""

    def __init__(self, name):
        self.name = name
        MADE.append(len(ALIVE))
        ALIVE.add(self)

    def __reduce__(self):
        return Part, (self.name,)


def test_what_is_returned_is_made_when_nothing_of_the_first_is_left():
    MADE.clear()

    @compact
    def parts(names, *, last):
        return {"kept": [Part(name) for name in [*names, last]]}

    made = parts("ab", last="c")

    assert [part.name for part in made["kept"]] == ["a", "b", "c"]
    assert MADE == [0, 1, 2, 0, 1, 2]


def test_settings_are_what_the_file_says(tmp_path):
    file = tmp_path / "proxy.yaml"
    file.write_text(
        "listeners: [{name: a, advertised_host: h, bootstrap_port: 1, broker_port_base: 2,"
        " upstream: {bootstrap: [h:9092]}}]\n"
        "quotas: {clients: [{entity: {user: u}, producer_byte_rate: 5, expires: 2030-12-31T23:00:00Z}]}\n"
    )
    [entry] = load(file).quotas.clients
    assert entry["entity"] == {"user": "u"}
    assert entry["producer_byte_rate"] == 5
    assert entry["expires"].year == 2030
