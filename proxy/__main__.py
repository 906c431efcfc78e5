"""`python -m proxy` is `quota-proxy`."""

from proxy.cli import main

main(prog_name="quota-proxy")
