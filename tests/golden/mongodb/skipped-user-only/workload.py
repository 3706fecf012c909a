"""w"""


def setup(client):
    client.inventory.a.insert_one({"_id": 1, "n": 1})


def run(client):
    a = client.inventory.a
    a.insert_one({"_id": 2, "n": 1})
    a.update_one({"_id": 2}, {"$set": {"n": 2}})
    a.replace_one({"_id": 2}, {"n": 3})
    a.delete_one({"_id": 2})
    yield "wait"
    with client.start_session() as session, session.start_transaction():
        a.insert_one({"_id": 3, "n": 1}, session=session)
        a.update_one({"_id": 3}, {"$set": {"n": 2}}, session=session)
        a.delete_one({"_id": 1}, session=session)
    a.insert_one({"_id": 9, "n": 1})
    a.update_one({"_id": 9}, {"$set": {"n": 1000}})
    a.delete_one({"_id": 9})
