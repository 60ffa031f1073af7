"""What the daemon does with the hardware it is attached to."""
