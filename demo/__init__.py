"""What makes a fresh installation alive: demo people, a simulated market, signals and news."""
