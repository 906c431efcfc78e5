"""InterceptedApi: an API that the wire ring knows only by its versions."""

from typing import final

from proxy.wire.apis.api import Api


@final
class InterceptedApi(Api):
    """An API that the proxy answers or follows itself, with its versions from 0 on.

    The set of intercepted APIs can change after a client has read ApiVersions. ApiVersions therefore never
    offers a version that the proxy could not answer.
    """

    def __init__(self, key: int, newest: int, flexible_from: int) -> None:
        self.key = key
        self.oldest = 0
        self.newest = newest
        self.flexible_from = flexible_from
