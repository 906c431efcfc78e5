"""`quota-proxy quotas`: client quotas as code, over Kafka's admin protocol (KIP-546).

It works with a quota proxy and with a plain Kafka broker. docs/quotas-as-code.md is its manual.

commands, *_command(s)    the commands
options, output, sending  shared by the commands
entity, changes           entities of quotas; the difference of two sets of quotas
client, access_file       AlterClientQuotas and DescribeClientQuotas; TLS and login
quota_file, whole_file    quotas as YAML and JSON; replacing a file
values                    numbers and times
audit_log                 the topic with the proxy's changes
"""
