"""APIs that the proxy does not read on their way, but answers itself where a quota or its store wants it to.

Whether it does can change at any moment, on connections that have long asked for the versions that there are.
So clients are never offered a version that the proxy could not answer.
"""

from typing import Final, final

from proxy.wire import api_keys
from proxy.wire.apis import Api


@final
class InterceptedApi(Api):
    """An API's versions, from 0 on."""

    def __init__(self, key: int, newest: int, flexible_from: int) -> None:
        self.key = key
        self.oldest = 0
        self.newest = newest
        self.flexible_from = flexible_from


CREATE_TOPICS: Final = InterceptedApi(api_keys.CREATE_TOPICS, 7, 5)
DELETE_TOPICS: Final = InterceptedApi(api_keys.DELETE_TOPICS, 6, 4)
DESCRIBE_CONFIGS: Final = InterceptedApi(api_keys.DESCRIBE_CONFIGS, 4, 4)
ALTER_CONFIGS: Final = InterceptedApi(api_keys.ALTER_CONFIGS, 2, 2)
CREATE_PARTITIONS: Final = InterceptedApi(api_keys.CREATE_PARTITIONS, 3, 2)
INCREMENTAL_ALTER_CONFIGS: Final = InterceptedApi(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, 1)
DESCRIBE_CLIENT_QUOTAS: Final = InterceptedApi(api_keys.DESCRIBE_CLIENT_QUOTAS, 1, 1)
ALTER_CLIENT_QUOTAS: Final = InterceptedApi(api_keys.ALTER_CLIENT_QUOTAS, 1, 1)
ANSWERED: Final = [
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
    CREATE_PARTITIONS,
    INCREMENTAL_ALTER_CONFIGS,
    DESCRIBE_CLIENT_QUOTAS,
    ALTER_CLIENT_QUOTAS,
]
