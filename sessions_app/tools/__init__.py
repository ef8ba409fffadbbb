"""Tool sources: MCP connections, argument checks, durations, the demo shop. No Django in here."""
