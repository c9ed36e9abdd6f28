"""The demo that brings a fresh installation to life: people, a simulated market, signals and news. It has
no models, and is an app so that Django finds its commands."""
