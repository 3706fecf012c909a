"""Declares the functions of IBM's CLI library ("Call Level Interface Guide and Reference"), and its errors."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char_p, c_int16, c_int32, c_uint16, c_uint32, c_void_p
from functools import cache
from typing import Any

ENVIRONMENT, CONNECTION, STATEMENT = 1, 2, 3
SUCCESS, WITH_INFO, NO_DATA = 0, 1, 100
NULL_DATA = -1
# Attributes, and kinds of information.
ATTR_ODBC_VERSION, ATTR_AUTOCOMMIT, ATTR_QUERY_TIMEOUT, ATTR_TXN_ISOLATION = 200, 102, 0, 108
ATTR_ROW_ARRAY_SIZE, ATTR_ROWS_FETCHED, ATTR_DEFERRED_PREPARE = 27, 26, 1277
DBMS_NAME, DBMS_VERSION, APPLICATION_CODEPAGE = 17, 18, 2519
ROLLBACK = 1
UTF8 = 1208
_NTS = -3
_ODBC_3 = 3
_TEXT = 1024
# Lengths are 32 bits: this is not the library for managers of ODBC drivers.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "SQLAllocHandle": (c_int16, c_void_p, POINTER(c_void_p)),
    "SQLFreeHandle": (c_int16, c_void_p),
    "SQLSetEnvAttr": (c_void_p, c_int32, c_void_p, c_int32),
    "SQLSetConnectAttr": (c_void_p, c_int32, c_void_p, c_int32),
    "SQLSetStmtAttr": (c_void_p, c_int32, c_void_p, c_int32),
    "SQLDriverConnect": (*(c_void_p, c_void_p, c_char_p, c_int16, c_char_p, c_int16, POINTER(c_int16), c_uint16),),
    "SQLDisconnect": (c_void_p,),
    "SQLExecDirect": (c_void_p, c_char_p, c_int32),
    "SQLPrepare": (c_void_p, c_char_p, c_int32),
    "SQLNumResultCols": (c_void_p, POINTER(c_int16)),
    "SQLDescribeCol": (
        *(c_void_p, c_uint16, c_char_p, c_int16, POINTER(c_int16), POINTER(c_int16), POINTER(c_uint32)),
        *(POINTER(c_int16), POINTER(c_int16)),
    ),
    "SQLBindCol": (c_void_p, c_uint16, c_int16, c_void_p, c_int32, c_void_p),
    "SQLFetch": (c_void_p,),
    "SQLEndTran": (c_int16, c_void_p, c_int16),
    "SQLGetInfo": (c_void_p, c_uint16, c_char_p, c_int16, POINTER(c_int16)),
    "SQLGetDiagRec": (*(c_int16, c_void_p, c_int16, c_char_p, POINTER(c_int32), c_char_p, c_int16, POINTER(c_int16)),),
}


class Db2Error(Exception):
    """What the server or the CLI library says. `state` is the SQLSTATE, `code` the SQLCODE, -99999 of the library."""

    def __init__(self, text: str, state: str = "", code: int = 0) -> None:
        super().__init__(text)
        self.state, self.code = state, code


@cache
def library() -> Any:
    """The library, with the types of its functions. Texts are UTF-8, whatever the locale of the process is."""
    os.environ["DB2CODEPAGE"] = str(UTF8)
    import ibm_db

    # Its symbols are those of the library that it needs, wherever that is.
    driver = ctypes.CDLL(ibm_db.__file__)
    for name, types in _FUNCTIONS.items():
        function = getattr(driver, name)
        function.argtypes, function.restype = types, c_int16
    return driver


@cache
def environment() -> c_void_p:
    """The handle that all connections of the process share. Raises Db2Error."""
    made = handle(ENVIRONMENT, None)
    _checked(library().SQLSetEnvAttr(made, ATTR_ODBC_VERSION, _ODBC_3, 0), ENVIRONMENT, made)
    return made


def handle(kind: int, parent: c_void_p | None) -> c_void_p:
    """A new handle. Raises Db2Error."""
    made = c_void_p()
    result = library().SQLAllocHandle(kind, parent, ctypes.byref(made))
    if result != SUCCESS:
        raise error_of(kind - 1, parent) if parent else Db2Error("IBM's CLI library cannot be initialised")
    return made


def call(name: str, kind: int, on: c_void_p, *arguments: Any) -> int:
    """Call a function on a handle; SUCCESS, WITH_INFO or NO_DATA. Raises Db2Error."""
    return _checked(getattr(library(), name)(on, *arguments), kind, on)


def _checked(result: int, kind: int, on: c_void_p) -> int:
    if result not in (SUCCESS, WITH_INFO, NO_DATA):
        raise error_of(kind, on)
    return result


def error_of(kind: int, on: c_void_p) -> Db2Error:
    """The first error of a handle."""
    state, text = ctypes.create_string_buffer(6), ctypes.create_string_buffer(_TEXT + 1)
    code, size = c_int32(), c_int16()
    result = library().SQLGetDiagRec(kind, on, 1, state, ctypes.byref(code), text, _TEXT, ctypes.byref(size))
    if result not in (SUCCESS, WITH_INFO):
        return Db2Error("IBM's CLI library gives no reason")
    said = text.value.decode("utf-8", "replace").strip()
    return Db2Error(said, state.value.decode("ascii", "replace"), code.value)


def info(connection: c_void_p, kind: int) -> bytes:
    """What the library knows of a connection, as bytes. Raises Db2Error."""
    buffer, size = ctypes.create_string_buffer(256), c_int16()
    call("SQLGetInfo", CONNECTION, connection, kind, buffer, len(buffer), ctypes.byref(size))
    return buffer.raw[: size.value]


def open_connection(settings: str) -> c_void_p:
    """The handle of a new connection, by a connection string. Raises Db2Error."""
    made = handle(CONNECTION, environment())
    shown, size = ctypes.create_string_buffer(_TEXT), c_int16()
    try:
        call("SQLDriverConnect", CONNECTION, made, None, settings.encode(), _NTS, shown, _TEXT, ctypes.byref(size), 0)
    except Db2Error:
        library().SQLFreeHandle(CONNECTION, made)
        raise
    return made


def roll_back(connection: c_void_p) -> None:
    """End the transaction of a connection. Raises Db2Error."""
    _checked(library().SQLEndTran(CONNECTION, connection, ROLLBACK), CONNECTION, connection)


def close_connection(connection: c_void_p) -> None:
    """Roll back, disconnect and free the handle; a connection that is cut is gone already."""
    library().SQLEndTran(CONNECTION, connection, ROLLBACK)
    library().SQLDisconnect(connection)
    library().SQLFreeHandle(CONNECTION, connection)


def executed(statement: c_void_p, text: str) -> None:
    """Run a text. Raises Db2Error."""
    encoded = text.encode("utf-8")
    call("SQLExecDirect", STATEMENT, statement, encoded, len(encoded))


def prepared(statement: c_void_p, text: str) -> None:
    """Have the server parse a text, now. Raises Db2Error."""
    encoded = text.encode("utf-8")
    call("SQLSetStmtAttr", STATEMENT, statement, ATTR_DEFERRED_PREPARE, 0, 0)
    call("SQLPrepare", STATEMENT, statement, encoded, len(encoded))
