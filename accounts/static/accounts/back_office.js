// htmx would add a style element of its own, which the policy forbids and unfold does not need.
htmx.config.includeIndicatorStyles = false;
