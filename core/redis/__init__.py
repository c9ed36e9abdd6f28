"""Where Redis is, and the clients that everybody shares it through."""
