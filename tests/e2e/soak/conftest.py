"""The servers of the operations tests serve here too."""

import importlib.util
import sys
from pathlib import Path

SPEC = importlib.util.spec_from_file_location("operations", Path(__file__).parents[2] / "operations/conftest.py")
operations = importlib.util.module_from_spec(SPEC)
sys.modules["operations"] = operations
SPEC.loader.exec_module(operations)
folder, start, redis, moto = operations.folder, operations.start, operations.redis, operations.moto
