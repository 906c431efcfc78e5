"""What the commands read and change in a cluster, through the proxy or at a broker, with retries."""
