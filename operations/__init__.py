"""What operators do with an installation: look whether it is in order, keep copies of it, move it."""
