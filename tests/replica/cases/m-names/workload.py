"""Collections with dots, blanks, slashes, 200 characters, and names that differ by case."""


def setup(client):
    client["Shop-1"]["a.b.c"].insert_one({"_id": 1})
    client["shop"]["sp ace"].insert_one({"_id": 1})
    client["shop"]["Case"].insert_one({"_id": 1})
    client["shop"]["case"].insert_one({"_id": 1})
    client["shop"]["ünïcode"].insert_one({"_id": 1})
    client["shop"]["n" * 200].insert_one({"_id": 1})
    client["shop"]["x/y"].insert_one({"_id": 1})
    client["shop"]["x,y"].insert_one({"_id": 1})


def run(client):
    for d, n in (
        ("Shop-1", "a.b.c"),
        ("shop", "sp ace"),
        ("shop", "Case"),
        ("shop", "case"),
        ("shop", "ünïcode"),
        ("shop", "n" * 200),
        ("shop", "x/y"),
        ("shop", "x,y"),
        ("shop", "system.js"),
        ("shop", "system_views"),
    ):
        client[d][n].insert_one({"_id": 2})
        client[d][n].update_one({"_id": 1}, {"$set": {"v": 1}})
    yield "wait"
