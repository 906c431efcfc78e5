"""Tables in the formats of a lake, each of which a run replaces once the new rows are whole."""
