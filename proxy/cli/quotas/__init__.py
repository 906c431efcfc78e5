"""`quota-proxy quotas`: client quotas as code, over Kafka's admin protocol (KIP-546).

Works against a quota proxy and against a plain Kafka broker; docs/quotas-as-code.md is its manual.

commands, *_commands      what the user types
options, output, sending  what the commands share
entity, changes           whom a quota is for; what differs between two sets of quotas
client, batches           AlterClientQuotas and DescribeClientQuotas, in requests that a broker takes
quota_file, table         quotas as YAML, JSON and columns
expiry, number            what the user writes for a time and for a value
audit_log                 the proxy's topic of changes
"""
