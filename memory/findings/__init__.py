"""The findings store: what every run learnt, with the scope in which it holds."""
