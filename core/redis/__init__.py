"""Where Redis is, and the clients that share it."""
