"""InterceptedApi: an API of which the wire ring knows the versions alone."""

from typing import final

from proxy.wire.apis import Api


@final
class InterceptedApi(Api):
    """An API that the proxy answers or follows itself, with its versions from 0 on.

    Whether the proxy intercepts a request can change at any time, on connections whose clients have read
    ApiVersions long ago. So clients are never offered a version that the proxy could not answer.
    """

    def __init__(self, key: int, newest: int, flexible_from: int) -> None:
        self.key = key
        self.oldest = 0
        self.newest = newest
        self.flexible_from = flexible_from
