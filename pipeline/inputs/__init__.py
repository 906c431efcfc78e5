"""The files that users write for a job: quotas, prices, tenants."""
