"""Several web processes on one host, and the supervisor that keeps them running."""
