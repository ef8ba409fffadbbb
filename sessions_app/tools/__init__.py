"""Tool sources: MCP connections, argument checks, durations, and the demo shop. No Django in here."""
