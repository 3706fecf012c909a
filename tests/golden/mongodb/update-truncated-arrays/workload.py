"""Arrays cut short by updates, which the server reports as truncations when that is the smaller change."""


def setup(client):
    client.inventory.create_collection("docs", changeStreamPreAndPostImages={"enabled": True})


def run(client):
    docs = client.inventory.docs
    docs.insert_one(
        {
            "_id": 1,
            "list": [f"element number {number}" for number in range(12)],
            "deep": {"list": [f"element number {number}" for number in range(8)], "other": "o" * 60},
        }
    )
    yield "wait"
    docs.update_one({"_id": 1}, [{"$set": {"list": {"$slice": ["$list", 9]}}}])
    yield "wait"
    docs.update_one(
        {"_id": 1}, [{"$set": {"deep.list": {"$slice": ["$deep.list", 5]}, "list": {"$slice": ["$list", 7]}, "n": 1}}]
    )
    yield "wait"
    docs.replace_one({"_id": 1}, {"list": []})
