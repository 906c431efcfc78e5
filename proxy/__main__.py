"""`python -m proxy` is `quota-proxy`."""

from proxy.cli.main import main

main(prog_name="quota-proxy")
