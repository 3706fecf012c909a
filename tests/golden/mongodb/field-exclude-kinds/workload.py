"""x"""


def setup(client):
    client.shop.c.insert_one(
        {
            "_id": 1,
            "a": {"b": {"c": 1, "d": 2}, "e": 3},
            "arr": [{"x": 1, "y": 2}, {"x": 3, "y": 4}],
            "n": 1,
            "gone": {"in": 1, "out": 2},
        }
    )


def run(client):
    c = client.shop.c
    for update in (
        {"$set": {"a.b.c": 5}},
        {"$set": {"a.b": {"c": 6, "d": 7}}},
        {"$set": {"a": {"b": {"c": 8, "d": 9}, "e": 1}}},
        {"$set": {"arr.0.x": 10}},
        {"$set": {"arr.1": {"x": 11, "y": 12}}},
        {"$push": {"arr": {"x": 13, "y": 14}}},
        {"$pop": {"arr": 1}},
        {"$unset": {"gone.in": 1}},
        {"$unset": {"gone": 1}},
        {"$unset": {"a.b.c": 1}},
        {"$unset": {"a.b": 1}},
        {"$unset": {"a": 1}},
        {"$set": {"n": 2, "a.b.c": 3}},
        {"$set": {"a.b.c.deep": 3}} if False else {"$set": {"gone.in": {"deep": 1}}},
        {"$set": {"gone.in.deep": 2}},
        {"$unset": {"gone.in.deep": 1}},
    ):
        c.update_one({"_id": 1}, update)
        yield "wait"
    c.replace_one({"_id": 1}, {"a": {"b": {"c": 1}}, "arr": [{"x": 5}], "gone": {"in": 1}})
    yield "wait"
    c.delete_one({"_id": 1})
