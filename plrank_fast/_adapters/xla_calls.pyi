from collections.abc import Callable
from typing import Any

def calls_by(function: Callable[[str], Callable[..., Any]]) -> Any: ...
