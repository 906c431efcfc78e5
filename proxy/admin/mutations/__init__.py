"""The controller mutation quota (KIP-599) for requests that create, grow or delete topics."""
