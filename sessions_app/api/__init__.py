"""The REST API under /api/v1: the same actions and rows as the pages, as JSON."""
