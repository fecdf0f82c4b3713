"""The demo of the client tests serves here too, and the servers of a whole installation."""

import importlib.util
import sys
from pathlib import Path


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


start_demo = load("clients", "clients/conftest.py").start_demo
scale = load("scale", "e2e/scale/conftest.py")
operations = sys.modules["operations"]
folder, start, running = operations.folder, operations.start, scale.running
