"""The REST contract: what is answered and refused, which parameters are read, and how both are documented."""
