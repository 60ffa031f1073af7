"""Pictures of the boards, drawn from their JSON and what a Prometheus answers to their queries.

No Grafana takes part: layout, titles, units, colours and transformations are read from the JSON, so
a picture shows what a board asks for and gets, in the way Grafana would arrange it.
"""
