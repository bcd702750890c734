"""Hosts that are processes of this machine: how these are started and watched, take requests, and end."""
