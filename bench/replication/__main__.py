"""`python -m bench.replication` runs KIP-73's test plan."""

from bench.replication.kip_73 import main

if __name__ == "__main__":
    main()
