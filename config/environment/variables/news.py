from ..variable import VariableGroup, address, number, secret, switch, text, whole

NEWS = VariableGroup(
    "News and models",
    (
        switch("NEWS_POLLING", True, "0 leaves asking the sources of news to `tickwire-server poll-news`."),
        text("SENTIMENT_MODEL", "", "The model that scores headlines; none is the built-in one."),
        text("ONNX_MODEL_DIR", "", "A folder with model.onnx, tokenizer.json and config.json."),
        address(
            "OPENAI_BASE_URL", "https://api.openai.com/v1", "Any endpoint like OpenAI's.", "https", "http"
        ),
        text("OPENAI_MODEL", "", "The model to ask there; without it nobody is asked."),
        secret("OPENAI_API_KEY", "The key for that endpoint; it may be empty."),
        address(
            "ANTHROPIC_BASE_URL",
            "https://api.anthropic.com",
            "Any endpoint like Anthropic's.",
            "https",
            "http",
        ),
        text("ANTHROPIC_MODEL", "", "The model to ask there; without it nobody is asked."),
        secret("ANTHROPIC_API_KEY", "The key for that endpoint."),
        number("LANGUAGE_TIMEOUT_S", 20.0, "The most seconds that a call of a model may take, in all."),
        whole("LANGUAGE_DAILY_BUDGET", 500, "Calls of each model a UTC day, over all processes."),
    ),
)
