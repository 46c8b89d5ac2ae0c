"""Values by name, from this package and from others that are installed beside it."""
