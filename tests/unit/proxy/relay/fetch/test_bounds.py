import pytest

from proxy.relay.fetch.bounds import lower_max_bytes
from proxy.wire.views import RequestView


@pytest.mark.parametrize(
    ("max_bytes", "min_bytes", "bound", "edits"),
    [
        (1000, 1, 500, [(8, 500)]),
        (1000, 700, 500, [(4, 500), (8, 500)]),
        (500, 1, 500, []),
        (-1, 700, 500, []),
    ],
)
def test_a_bound_below_what_the_client_wants_is_put_in(
    max_bytes: int, min_bytes: int, bound: int, edits: list[tuple[int, int]]
) -> None:
    view = RequestView(1, 12, 1, "c", 100)
    view.max_bytes, view.min_bytes, view.min_bytes_at, view.max_bytes_at = max_bytes, min_bytes, 4, 8
    lower_max_bytes(view, bound)
    assert [(edit.start, int.from_bytes(edit.new, "big")) for edit in view.edits] == edits
    assert view.bounded is bool(edits)
    assert view.min_bytes == (min(min_bytes, bound) if edits else min_bytes)
