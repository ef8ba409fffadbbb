"""Telling people and programs about approvals: stored with the fact, sent later by a worker."""
