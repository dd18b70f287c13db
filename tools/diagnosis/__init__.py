"""From a server's log to the cause: class, causing line, remedies."""
