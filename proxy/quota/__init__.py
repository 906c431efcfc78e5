"""The rules of quotas: who is limited to what, how a flow is measured, and what a breach does.."""
