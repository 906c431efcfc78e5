"""Arrays that a broker reads into a hash table, and the layout of the messages that have them."""
