"""`python -m bench.sharing` simulates processes that share limits."""

from bench.sharing.processes import main

if __name__ == "__main__":
    main()
