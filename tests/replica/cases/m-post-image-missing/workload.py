"""Post-images of collections that keep none, or keep none any more."""


def setup(client):
    client.shop.create_collection("kept", changeStreamPreAndPostImages={"enabled": True})
    client.shop.kept.insert_one({"_id": 1, "v": 0})
    client.shop.plain.insert_one({"_id": 1, "v": 0})


def run(client):
    client.shop.kept.update_one({"_id": 1}, {"$set": {"v": 1}})
    client.shop.plain.update_one({"_id": 1}, {"$set": {"v": 1}})
    yield "wait"
    client.shop.late.insert_one({"_id": 1, "v": 0})
    client.shop.late.update_one({"_id": 1}, {"$set": {"v": 1}})
    client.shop.command("collMod", "kept", changeStreamPreAndPostImages={"enabled": False})
    client.shop.kept.update_one({"_id": 1}, {"$set": {"v": 2}})
    yield "wait"
