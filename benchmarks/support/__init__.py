"""What the benchmarks share: racks that run, networks to compare with, and how an answer looks."""
