"""What makes a fresh installation alive: demo people, a simulated market, signals and news. It has no models,
and is an app so that Django finds its commands."""
