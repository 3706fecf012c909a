"""Multi-document transactions, one of them aborted."""


def setup(client):
    client.inventory.create_collection("customers", changeStreamPreAndPostImages={"enabled": True})
    client.inventory.create_collection("orders")


def run(client):
    customers, orders = client.inventory.customers, client.inventory.orders
    with client.start_session() as session:
        with session.start_transaction():
            customers.insert_one({"_id": 1, "name": "Sally"}, session=session)
            orders.insert_many([{"_id": 10, "customer": 1}, {"_id": 11, "customer": 1}], session=session)
            customers.update_one({"_id": 1}, {"$set": {"orders": 2}}, session=session)
        session.start_transaction()
        customers.insert_one({"_id": 2, "name": "Never"}, session=session)
        session.abort_transaction()
    customers.insert_one({"_id": 3, "name": "Outside"})
    yield "wait"
    with client.start_session() as session, session.start_transaction():
        orders.delete_one({"_id": 10}, session=session)
        customers.delete_one({"_id": 1}, session=session)
