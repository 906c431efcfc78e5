"""One client connection and its broker connection, without sockets: bytes in, bytes out, and when to call
again.
"""
