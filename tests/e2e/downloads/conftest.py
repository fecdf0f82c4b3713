"""The demo of the client tests serves here too."""

import importlib.util
from pathlib import Path

SPEC = importlib.util.spec_from_file_location("clients", Path(__file__).parents[2] / "clients/conftest.py")
clients = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(clients)
start_demo = clients.start_demo
