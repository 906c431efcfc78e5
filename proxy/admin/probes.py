"""Requests that change nothing, and that a broker rejects for clients without a right.

The types of these requests take a twentieth of a start to import, so other files import this one in the
functions that need it.
"""

from typing import Final

from kio.schema.alter_client_quotas.v0.request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kio.schema.alter_client_quotas.v0.response import AlterClientQuotasResponse
from kio.schema.describe_acls.v1.request import DescribeAclsRequest
from kio.schema.describe_acls.v1.response import DescribeAclsResponse
from kio.schema.describe_client_quotas.v0.request import ComponentData, DescribeClientQuotasRequest
from kio.schema.describe_client_quotas.v0.response import DescribeClientQuotasResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import f64, i8

from proxy.quota.identity import USER
from proxy.security.access import Asker

PROBE: Final = "quota-proxy-asks-who-may"
"""The user, or resource, of the requests."""
ALL: Final = i8(2)


async def has_no_authorizer(broker: Asker) -> bool:
    """Return whether the cluster has no authorizer: DescribeAcls then gets error 54 for every client."""
    request = DescribeAclsRequest(
        resource_type_filter=ALL,
        resource_name_filter=PROBE,
        pattern_type_filter=i8(3),
        principal_filter=None,
        host_filter=None,
        operation=ALL,
        permission_type=ALL,
    )
    response = await broker.ask(request, DescribeAclsResponse)
    return response.error_code == ErrorCode.security_disabled


async def lets_describe_quotas(broker: Asker) -> bool:
    """Return whether the broker lets the client read quotas."""
    component = ComponentData(entity_type=USER, match_type=i8(0), match=PROBE)
    request = DescribeClientQuotasRequest(components=(component,), strict=True)
    response = await broker.ask(request, DescribeClientQuotasResponse)
    return response.error_code != ErrorCode.cluster_authorization_failed


async def lets_alter_quotas(broker: Asker) -> bool:
    """Return whether the broker lets the client change quotas."""
    entry = EntryData(
        entity=(EntityData(entity_type=USER, entity_name=PROBE),),
        ops=(OpData(key="producer_byte_rate", value=f64(1.0), remove=False),),
    )
    request = AlterClientQuotasRequest(entries=(entry,), validate_only=True)
    response = await broker.ask(request, AlterClientQuotasResponse)
    codes = [entry.error_code for entry in response.entries]
    return bool(codes) and ErrorCode.cluster_authorization_failed not in codes
