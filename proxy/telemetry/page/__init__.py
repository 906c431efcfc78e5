"""The page of the admin port."""
