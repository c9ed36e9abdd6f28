from ..variable import VariableGroup, address, number, secret, switch, text, whole

NEWS = VariableGroup(
    "News and models",
    (
        switch("NEWS_POLLING", True, "0 leaves polling the news sources to `tickwire-server poll-news`."),
        text("SENTIMENT_MODEL", "", "The model that scores headlines; empty means the built-in one."),
        text("ONNX_MODEL_DIR", "", "A folder with model.onnx, tokenizer.json and config.json."),
        address(
            "OPENAI_BASE_URL",
            "https://api.openai.com/v1",
            "Any endpoint compatible with OpenAI's.",
            "https",
            "http",
        ),
        text("OPENAI_MODEL", "", "The model to use there; without it, the endpoint is not used."),
        secret("OPENAI_API_KEY", "The key for that endpoint; it may be empty."),
        address(
            "ANTHROPIC_BASE_URL",
            "https://api.anthropic.com",
            "Any endpoint compatible with Anthropic's.",
            "https",
            "http",
        ),
        text("ANTHROPIC_MODEL", "", "The model to use there; without it, the endpoint is not used."),
        secret("ANTHROPIC_API_KEY", "The key for that endpoint."),
        number(
            "LANGUAGE_TIMEOUT_S", 20.0, "The maximum number of seconds that a whole call to a model may take."
        ),
        whole("LANGUAGE_DAILY_BUDGET", 500, "Calls to each model per UTC day, over all processes."),
    ),
)
