"""What the server and the processes of its sessions share: messages, sockets, memory, and the right to a connection."""
