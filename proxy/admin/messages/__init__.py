"""The admin APIs that the proxy responds to itself: their requests and responses, one file per API."""
