"""Spend: what model calls cost, who may spend how much, and the question before each call."""
