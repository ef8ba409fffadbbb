"""The demo shop: an MCP server with orders, a refund policy, refunds and e-mails, on SQLite."""
