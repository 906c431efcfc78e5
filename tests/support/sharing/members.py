"""The view of one of several processes that share limits, none of which uses anything."""

from proxy.quota.sharing.first_parts import SharedFirstParts
from proxy.quota.sharing.reports import Report
from proxy.quota.sharing.sharing import Sharing


def one_of(count: int) -> Sharing:
    """All have read that all are there, so each has an equal part of each limit."""
    names = [f"p{number}" for number in range(count)]
    sharing = Sharing(names[0])
    for offset, name in enumerate(names * 2):
        number = 1 + offset // count
        read_to = count * (number - 1)
        sharing.see(Report(instance=name, number=number, read_to=read_to, buckets=[]), offset, 1000)
    return sharing


def a_quarter(node_id: int = 1) -> SharedFirstParts:
    """The first parts of a broker's buckets, of which nobody has reported any."""
    return SharedFirstParts(node_id, one_of(4))
