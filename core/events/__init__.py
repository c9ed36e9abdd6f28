"""Control events: facts that every process receives in commit order, soon after they are committed."""
