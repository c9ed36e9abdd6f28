"""What strangers see first: what the service is, what it costs, and what search engines may read."""
