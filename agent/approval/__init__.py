"""What may be launched without asking, what is asked, and what is never launched."""
