"""The language-model client for any OpenAI-compatible endpoint: bounded, probed once, parsed tolerantly."""
