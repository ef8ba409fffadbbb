"""The admin pages of agents, connections and credentials."""
