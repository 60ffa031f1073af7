"""The one table of what acceld shows: metrics, API messages and reference page are made from it."""
