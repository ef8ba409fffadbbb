"""The admin pages of agents, connections and credentials, and sessions to look at."""

from sessions_app.admin import agents, connections, credentials, people, records

__all__ = ["agents", "connections", "credentials", "people", "records"]
