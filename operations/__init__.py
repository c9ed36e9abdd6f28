"""What operators do with an installation: check it, copy it, move it."""
