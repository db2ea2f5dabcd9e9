# Nothing is in it.

