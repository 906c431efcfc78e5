"""The HTML report: what tenants used, how they were throttled, and what they pay. Charts are inline SVG."""
