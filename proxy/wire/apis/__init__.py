"""The APIs that the proxy knows: a file for each that it parses, and the versions of the intercepted ones."""
