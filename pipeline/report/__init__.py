"""One page for people: what tenants used, waited for and pay. Charts are SVG inside the page; no script."""
