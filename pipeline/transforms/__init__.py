"""Functions from DataFrame to DataFrame: no session, no path, no clock."""
