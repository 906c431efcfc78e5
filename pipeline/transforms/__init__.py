"""Tables out of tables. Functions DataFrame -> DataFrame: no session, no path, no clock."""
