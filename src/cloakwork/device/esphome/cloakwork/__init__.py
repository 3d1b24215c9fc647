"""Cloakwork for ESPHome: see sensor.py."""
