from types import ModuleType

LONGEST_LIST: int

def read_others_with(package: ModuleType) -> ModuleType | None: ...
