"""A clustered and a capped collection, one with a collation, a time series and a view."""

import datetime


def setup(client):
    client.shop.create_collection("clustered", clusteredIndex={"key": {"_id": 1}, "unique": True})
    client.shop.clustered.insert_many([{"_id": i, "v": "x" * 100} for i in range(50)])
    client.shop.create_collection("capped", capped=True, size=4096, max=5)
    client.shop.capped.insert_many([{"_id": i} for i in range(5)])
    client.shop.create_collection("ci", collation={"locale": "en", "strength": 1, "numericOrdering": True})
    client.shop.ci.insert_many([{"_id": f"{'aA'[i % 2]}{i}", "v": i} for i in range(300)])
    client.shop.ci.insert_many(
        [{"_id": i, "v": i} for i in range(3)] + [{"_id": "\u00e9"}, {"_id": "zz10"}, {"_id": "ZZ9"}]
    )
    client.shop.create_collection("ts", timeseries={"timeField": "t", "metaField": "m"})
    client.shop.ts.insert_one({"t": datetime.datetime(2024, 1, 1), "m": 1, "v": 1})
    client.shop.command({"create": "seen", "viewOn": "ci", "pipeline": []})


def run(client):
    client.shop.clustered.insert_many([{"_id": i, "v": "y"} for i in range(50, 60)])
    client.shop.clustered.update_many({"_id": {"$lt": 5}}, {"$set": {"v": "u"}})
    client.shop.clustered.delete_many({"_id": {"$gte": 55}})
    client.shop.capped.insert_many([{"_id": i} for i in range(5, 12)])
    client.shop.ci.update_one({"_id": "A10"}, {"$set": {"v": "u"}})
    client.shop.ci.delete_one({"_id": "zz9"})
    client.shop.ts.insert_one({"t": datetime.datetime(2024, 1, 2), "m": 1, "v": 1})
    yield "wait"
