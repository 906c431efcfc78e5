"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs, at every version that kio knows."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kio.schema.errors import ErrorCode

from tests.support.messages.kio_messages import request_type
from tests.support.messages.requests import build, part

DESCRIBE: Final = 32
ALTER: Final = 33
INCREMENTAL: Final = 44
TOPIC: Final = 2
BROKER: Final = 4
SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3

Resource = tuple[int, str]
Results = list[tuple[Resource, ErrorCode, str | None]]


class Shown(NamedTuple):
    """A config as DescribeConfigs shows it."""

    value: str | None
    source: int | None
    synonyms: tuple[tuple[str | None, int], ...] = ()


def incremental_request(
    resources: Sequence[tuple[Resource, Sequence[tuple[str, int, str | None]]]],
    version: int = 1,
    *,
    validate_only: bool = False,
) -> Any:
    """Build an IncrementalAlterConfigs request; for each resource its configs: name, operation, value."""
    return _request_to_alter(INCREMENTAL, version, resources, validate_only)


def alter_request(
    resources: Sequence[tuple[Resource, Mapping[str, str | None]]],
    version: int = 2,
    *,
    validate_only: bool = False,
) -> Any:
    """Build an AlterConfigs request; for each resource all its configs."""
    ops = [
        (resource, [(name, SET, value) for name, value in configs.items()]) for resource, configs in resources
    ]
    return _request_to_alter(ALTER, version, ops, validate_only)


def _request_to_alter(
    api_key: int,
    version: int,
    resources: Sequence[tuple[Resource, Sequence[tuple[str, int, str | None]]]],
    validate_only: bool,
) -> Any:
    schema = request_type(api_key, version)
    asked = tuple(
        part(
            schema,
            "AlterConfigsResource",
            resource_type=kind,
            resource_name=name,
            configs=tuple(
                part(schema, "AlterableConfig", name=config, config_operation=operation, value=value)
                for config, operation, value in ops
            ),
        )
        for (kind, name), ops in resources
    )
    return build(schema, resources=asked, validate_only=validate_only)


def describe_request(
    resources: Sequence[tuple[Resource, Sequence[str] | None]],
    version: int = 4,
    *,
    synonyms: bool = True,
    documentation: bool = True,
) -> Any:
    """Build a DescribeConfigs request; for each resource the names of configs; None for all."""
    schema = request_type(DESCRIBE, version)
    asked = tuple(
        part(
            schema,
            "DescribeConfigsResource",
            resource_type=kind,
            resource_name=name,
            configuration_keys=None if names is None else tuple(names),
        )
        for (kind, name), names in resources
    )
    return build(schema, resources=asked, include_synonyms=synonyms, include_documentation=documentation)


def results(response: Any) -> Results:
    """The error code and message of each resource of an alter request."""
    return [
        ((int(result.resource_type), result.resource_name), result.error_code, result.error_message)
        for result in response.responses
    ]


def described(response: Any) -> dict[Resource, dict[str, Shown] | ErrorCode]:
    """The configs of each resource, or its error."""
    shown: dict[Resource, dict[str, Shown] | ErrorCode] = {}
    for result in response.results:
        key = (int(result.resource_type), result.resource_name)
        if result.error_code != ErrorCode.none:
            shown[key] = result.error_code
            continue
        shown[key] = {
            config.name: Shown(
                config.value,
                getattr(config, "config_source", None),
                tuple((synonym.value, int(synonym.source)) for synonym in getattr(config, "synonyms", ())),
            )
            for config in result.configs
        }
    return shown
