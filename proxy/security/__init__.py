"""TLS, certificates, principals and secrets, and the logins of the proxy's own connections."""
