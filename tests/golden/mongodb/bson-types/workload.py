"""One document with every BSON type."""

import datetime

from bson import SON, Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp


def run(client):
    types = client.inventory.types
    types.insert_one(
        SON(
            [
                ("_id", ObjectId("596e275826f08b2730779e1f")),
                ("double", 2.5),
                ("double_whole", 3.0),
                ("double_small", 1e-7),
                ("double_big", 1e22),
                ("double_nan", float("nan")),
                ("double_inf", float("inf")),
                ("double_neg_inf", float("-inf")),
                ("double_neg_zero", -0.0),
                ("string", "plain"),
                ("unicode", "h\u00e9llo \u4e16\u754c \U0001f600"),
                ("escapes", 'quote " back \\ tab \t nl \n nul-free \u0001 </x>'),
                ("empty", ""),
                ("object", SON([("b", 1), ("a", SON([("x", None)]))])),
                ("empty_object", {}),
                ("array", [1, "two", 3.0, None, [4, []], {"k": "v"}]),
                ("empty_array", []),
                ("binary", Binary(b"\x00\x01\xfe\xff")),
                ("binary_5", Binary(b"0123456789abcdef", 5)),
                ("uuid", Binary(b"0123456789abcdef", 4)),
                ("uuid_old", Binary(b"0123456789abcdef", 3)),
                ("object_id", ObjectId("5f3c2b1a0d9e8f7a6b5c4d3e")),
                ("true", True),
                ("false", False),
                ("date", datetime.datetime(2020, 2, 29, 12, 34, 56, 789000, tzinfo=datetime.timezone.utc)),
                ("date_early", datetime.datetime(1901, 1, 1, tzinfo=datetime.timezone.utc)),
                ("date_late", datetime.datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=datetime.timezone.utc)),
                ("null", None),
                ("regex", Regex("^a.*b$", "imx")),
                ("dbref", DBRef("other", ObjectId("5f3c2b1a0d9e8f7a6b5c4d3e"), "elsewhere")),
                ("code", Code("function() { return 1; }")),
                ("code_scope", Code("return x;", {"x": 1})),
                ("int", 42),
                ("int_min", -(2**31)),
                ("long", Int64(42)),
                ("long_max", Int64(2**63 - 1)),
                ("long_min", Int64(-(2**63))),
                ("timestamp", Timestamp(1580000000, 7)),
                ("decimal", Decimal128("12.50")),
                ("decimal_exp", Decimal128("1E+30")),
                ("decimal_nan", Decimal128("NaN")),
                ("decimal_inf", Decimal128("-Infinity")),
                ("min", MinKey()),
                ("max", MaxKey()),
            ]
        )
    )
    types.update_one(
        {},
        {
            "$set": {
                "int": 43,
                "date": datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=datetime.timezone.utc),
                "decimal": Decimal128("0"),
            }
        },
    )
