"""Cloakwork."""
