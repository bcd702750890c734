"""Simulates a server, its sessions' processes, their disk, the network and clients in one process, from one seed."""
