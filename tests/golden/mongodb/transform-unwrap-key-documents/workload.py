"""Keys that are documents, through the new document state transformation."""


def run(client):
    docs = client.inventory.docs
    docs.insert_one({"_id": {"a": 16, "b": {"c": "x"}}, "n": 1})
    yield "wait"
    docs.delete_one({"_id": {"a": 16, "b": {"c": "x"}}})
