"""The demo shop: a small MCP server with orders, a refund policy, refunds and e-mails, on SQLite."""
