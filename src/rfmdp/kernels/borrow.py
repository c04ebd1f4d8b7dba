"""Arrays without reference counts, for the steps inside a kernel.

numba counts references to arrays: taking an array out of a tuple costs two atomic operations, in a
step that runs once per row about as much as the row itself. A kernel's arguments outlive it, so
it borrows them in its first line; from there on tuples of arrays are free to hand around.
"""

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload


def borrow(value):
    """Return an array, or a tuple of arrays and numbers, without ownership of the arrays."""
    return value


@intrinsic
def _borrow(typing_context, value):
    def generate(context, builder, signature, arguments):
        return _without_owner(context, builder, signature.args[0], arguments[0])

    return value(value), generate


def _without_owner(context, builder, kind, value):
    """Return the value with null in place of the owners of its arrays."""
    if isinstance(kind, types.BaseTuple):
        parts = cgutils.unpack_tuple(builder, value, len(kind))
        bare = [_without_owner(context, builder, *pair) for pair in zip(kind, parts, strict=True)]
        return context.make_tuple(builder, kind, bare)
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    return value


@overload(borrow, inline="always")
def _compiled_borrow(value):
    return lambda value: _borrow(value)
