# mypy: ignore-errors
"""`prefetch(array, index)` in compiled code: call the entry into the cache without waiting for it."""

from __future__ import annotations

from llvmlite import ir as llvm
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def prefetch(typing, array, index):
    """LLVM's `llvm.prefetch`, for reading, into every level. It never faults, whatever the index."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(view.data, [arguments[1]])
        number = llvm.IntType(32)
        bytes_ = llvm.IntType(8).as_pointer()
        name = "llvm.prefetch.p0" if getattr(llvm.PointerType(), "is_opaque", False) else "llvm.prefetch.p0i8"
        kind = llvm.FunctionType(llvm.VoidType(), [bytes_, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        builder.call(function, [builder.bitcast(pointer, bytes_), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate
