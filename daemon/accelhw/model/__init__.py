"""What things are: frozen values, ids and snapshots. Reads from no other room."""
