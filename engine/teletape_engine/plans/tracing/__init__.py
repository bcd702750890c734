"""Tracing: what forward functions do to layouts, noted as instructions."""
