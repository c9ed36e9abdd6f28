"""Control events: facts that every process hears of, in commit order, soon after they are committed."""
