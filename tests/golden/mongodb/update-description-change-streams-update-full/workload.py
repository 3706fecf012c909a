"""Updates of many shapes."""


def setup(client):
    client.inventory.create_collection("docs", changeStreamPreAndPostImages={"enabled": True})


def run(client):
    docs = client.inventory.docs
    docs.insert_one(
        {"_id": 1, "a": 1, "b": {"c": 2, "d": [1, 2, 3]}, "list": [1, 2, 3, 4, 5], "gone": True, "dotted": {"x.y": 1}}
    )
    for change in (
        {"$set": {"a": 2}},
        {"$set": {"b.c": 3, "b.new": {"deep": [1]}}},
        {"$unset": {"gone": "", "b.new": ""}},
        {"$set": {"list.1": 20}},
        {"$push": {"list": 6}},
        {"$rename": {"a": "renamed"}},
        {"$push": {"list": {"$each": [], "$slice": 2}}},
        [{"$set": {"list": {"$slice": ["$list", 1]}, "b.d": {"$slice": ["$b.d", 1]}}}],
        [{"$unset": ["b"]}],
        {"$set": {"renamed": 6}},
        {"$set": {"nulled": None}},
    ):
        docs.update_one({"_id": 1}, change)
        yield "wait"
    docs.update_one({"_id": 2}, {"$set": {"upserted": True}}, upsert=True)
    docs.find_one_and_update({"_id": 2}, {"$set": {"found": 1}})
