from collections.abc import Callable
from typing import Any, Self

from typing_extensions import disjoint_base

@disjoint_base
class Answering:
    def __new__(cls, function: Callable[..., Any], answer: Callable[[TypeError, Any], None]) -> Self: ...
