"""The gRPC API: a thin servicer per noun over the host."""
