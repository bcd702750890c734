"""Connections that are lent to this process: it reads their requests, runs and answers them."""
