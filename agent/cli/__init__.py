"""The commands: each reads settings, calls one library function and renders its events."""
