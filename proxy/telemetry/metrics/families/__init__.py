"""The families of `/metrics`, by subject: what each says, and the values of a scrape."""
