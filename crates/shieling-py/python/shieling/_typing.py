"""What the package needs of ``typing``, which takes longer to import than everything else here together.

Annotations are strings at runtime. Whoever evaluates them, as frameworks do for the functions that they call, gets what
``typing`` has; for ``Any`` that is ``object``.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any as Any
    from typing import ClassVar as ClassVar
    from typing import Literal as Literal
    from typing import NoReturn as NoReturn
    from typing import TypeAlias as TypeAlias
    from typing import cast as cast
else:

    class _Later:
        def __init__(self, name):
            self._name = name

        def __getitem__(self, parameters):
            import typing

            return getattr(typing, self._name)[parameters]

    Any = object
    ClassVar = _Later("ClassVar")
    Literal = _Later("Literal")
    NoReturn = None
    TypeAlias = object

    def cast(_kind, value):
        return value
