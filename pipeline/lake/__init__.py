"""Tables that a run changes by date, in the formats of a lake: the new rows appear once they are whole."""
