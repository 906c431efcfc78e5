"""APIs that the proxy does not read on their way, but answers itself where a quota or its store wants it to.

Whether it does can change at any moment, on connections that have long asked for the versions that there are.
So clients are never offered a version that the proxy could not answer.
"""

from typing import Final, final

from proxy.wire.apis import Api


@final
class InterceptedApi(Api):
    """An API's versions, from 0 on."""

    def __init__(self, key: int, name: str, newest: int, flexible_from: int) -> None:
        self.key = key
        self.name = name
        self.oldest = 0
        self.newest = newest
        self.flexible_from = flexible_from


CREATE_TOPICS: Final = InterceptedApi(19, "CreateTopics", 7, 5)
DELETE_TOPICS: Final = InterceptedApi(20, "DeleteTopics", 6, 4)
DESCRIBE_CONFIGS: Final = InterceptedApi(32, "DescribeConfigs", 4, 4)
ALTER_CONFIGS: Final = InterceptedApi(33, "AlterConfigs", 2, 2)
CREATE_PARTITIONS: Final = InterceptedApi(37, "CreatePartitions", 3, 2)
INCREMENTAL_ALTER_CONFIGS: Final = InterceptedApi(44, "IncrementalAlterConfigs", 1, 1)
DESCRIBE_CLIENT_QUOTAS: Final = InterceptedApi(48, "DescribeClientQuotas", 1, 1)
ALTER_CLIENT_QUOTAS: Final = InterceptedApi(49, "AlterClientQuotas", 1, 1)
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
