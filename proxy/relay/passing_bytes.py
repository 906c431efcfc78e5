"""The bytes of a large request, counted as they pass: each with its partition, as far as it has one."""

from proxy.relay.cut_through import CutThrough
from proxy.relay.traffic import Traffic
from proxy.wire.views import RequestView


def count_later(passing: CutThrough) -> None:
    """Have a large frame's bytes counted not at once, but as they pass."""
    usage = passing.exchange.client.usage
    if usage is not None:
        usage.count_in(passing.exchange.api_key, -passing.frame.size)
        passing.uncounted = passing.frame.size


def count_items(traffic: Traffic, passing: CutThrough, view: RequestView) -> None:
    """Count the items of a large frame that the quotas have judged, and let go of them."""
    if not view.items:
        return
    traffic.count_in(view.items)
    usage = passing.exchange.client.usage
    if usage is not None:
        passing.uncounted -= usage.records_in(passing.exchange.api_key, view.items)
    view.items = []


def count_rest(passing: CutThrough) -> None:
    """Count what of a large frame is no partition's, or has not come."""
    usage = passing.exchange.client.usage
    if usage is not None and passing.uncounted != 0:
        usage.count_in(passing.exchange.api_key, passing.uncounted)
        passing.uncounted = 0
