"""Telling somebody that a run ended or needs an answer: a command of theirs, a webhook, or both."""
