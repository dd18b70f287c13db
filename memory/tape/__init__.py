"""The tape: one append-only journal for record, replay, resume and fork."""
