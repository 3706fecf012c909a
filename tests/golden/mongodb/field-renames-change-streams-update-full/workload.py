"""Documents with fields to leave out or rename."""


def setup(client):
    client.inventory.people.insert_one(
        {"_id": 0, "name": "Snap", "ssn": "000", "address": {"street": "S", "zip": "1"}, "list": [{"x": 1, "y": 2}]}
    )


def run(client):
    people = client.inventory.people
    people.insert_one(
        {
            "_id": 1,
            "name": "Sally",
            "ssn": "123",
            "address": {"street": "Main", "zip": "12345"},
            "list": [{"x": 1, "y": 2}, {"x": 3}],
        }
    )
    yield "wait"
    people.update_one({"_id": 1}, {"$set": {"name": "Anne", "ssn": "456", "address.zip": "54321"}})
    yield "wait"
    people.update_one({"_id": 1}, {"$unset": {"ssn": "", "address.zip": ""}})
    yield "wait"
    people.update_one({"_id": 1}, {"$set": {"list.0.x": 9, "list.1.y": 8}})
    yield "wait"
    people.replace_one({"_id": 1}, {"ssn": "789", "address": {"zip": "9"}, "plain": 1})
    people.delete_one({"_id": 1})
