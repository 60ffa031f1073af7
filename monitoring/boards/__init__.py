"""The dashboards as code: `make dashboards` writes ../dashboards/*.json from a module per board."""
