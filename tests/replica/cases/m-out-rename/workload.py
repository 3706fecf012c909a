"""$out, a rename over another collection, a dropped collection that begins again, $merge."""


def setup(client):
    client.shop.orders.insert_many([{"_id": i, "v": i} for i in range(5)])
    client.shop.totals.insert_many([{"_id": "old", "n": 1}])
    client.shop.stock.insert_many([{"_id": 1, "n": 1}, {"_id": 2, "n": 2}])


def run(client):
    client.shop.orders.insert_one({"_id": 5, "v": 5})
    yield "wait"
    list(client.shop.orders.aggregate([{"$group": {"_id": {"$mod": ["$v", 2]}, "n": {"$sum": 1}}}, {"$out": "totals"}]))
    client.shop.stock_new.insert_many([{"_id": 2, "n": 22}, {"_id": 3, "n": 33}])
    client.shop.stock_new.rename("stock", dropTarget=True)
    yield "wait"
    client.shop.orders.drop()
    client.shop.orders.insert_one({"_id": 100, "v": 100})
    yield "wait"
    list(client.shop.orders.aggregate([{"$merge": "merged"}]))
    yield "wait"
