"""Functions on the program's session, pools of sessions, and the list of a server's sessions."""
