"""frozen: the result of a function is copied when everything that the function allocated is gone."""

import weakref
from datetime import datetime
from pathlib import Path

from proxy.config.frozen import frozen
from proxy.config.load import load

MADE: list[int] = []
ALIVE: "weakref.WeakSet[Part]" = weakref.WeakSet()


class Part:
    """Records how many instances exist when one is created."""

    def __init__(self, name: str) -> None:
        self.name = name
        MADE.append(len(ALIVE))
        ALIVE.add(self)

    def __reduce__(self) -> tuple[type["Part"], tuple[str]]:
        return Part, (self.name,)


def test_result_is_copied_after_the_original_is_released() -> None:
    MADE.clear()

    @frozen
    def parts(names: str, *, last: str) -> dict[str, list[Part]]:
        return {"kept": [Part(name) for name in [*names, last]]}

    made = parts("ab", last="c")

    assert [part.name for part in made["kept"]] == ["a", "b", "c"]
    assert MADE == [0, 1, 2, 0, 1, 2]


def test_loaded_settings_survive_the_copy(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(
        "listeners: [{name: a, advertised_host: h, bootstrap_port: 1, broker_port_base: 2,"
        " upstream: {bootstrap: [h:9092]}}]\n"
        "quotas: {clients: [{entity: {user: u}, producer_byte_rate: 5, expires: 2030-12-31T23:00:00Z}]}\n"
    )
    [entry] = load(file).quotas.clients
    assert entry["entity"] == {"user": "u"}
    assert entry["producer_byte_rate"] == 5
    expires = entry["expires"]
    assert isinstance(expires, datetime)
    assert expires.year == 2030
