"""What outlives a restart of the daemon. Reads from accelhw.model alone."""
