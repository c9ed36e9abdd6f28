"""Whether requests to this process would succeed, and what is shared by all and away."""
