"""How the sessions of a server get hosts and lose them: started, parked to make room, recovered, ended."""
