"""The load generator: closed and open loop, streaming, self-checking."""
