"""The language-model client for OpenAI-compatible endpoints."""
