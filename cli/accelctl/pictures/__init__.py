"""Pictures of measurements: SVG and PNG made by hand, and blocks for a terminal."""
