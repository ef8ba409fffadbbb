"""The admin pages of agents, connections, credentials and spend, and sessions to look at."""

from sessions_app.admin import agents, connections, credentials, people, records, spend

__all__ = ["agents", "connections", "credentials", "people", "records", "spend"]
