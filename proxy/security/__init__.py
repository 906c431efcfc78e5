"""Who is who: certificates and their names, and how the proxy itself logs in at brokers."""
