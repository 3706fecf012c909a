"""The same documents flattened, arrays as documents, deletes rewritten with their ids and a tombstone."""

from tests.compare.mongodb.cases import it_unwrap

PROPERTIES = {
    **it_unwrap.PROPERTIES,
    "transforms.unwrap.array.encoding": "document",
    "transforms.unwrap.flatten.struct": "true",
    "transforms.unwrap.flatten.struct.delimiter": "-",
    "transforms.unwrap.delete.tombstone.handling.mode": "rewrite-with-tombstone",
    "transforms.unwrap.delete.tombstone.handling.mode.rewrite-with-id": "true",
    "transforms.unwrap.add.fields": "op:OP,db,updateDescription.updatedFields:set,updateDescription.removedFields:gone",
    "transforms.unwrap.add.headers": "op:OPERATION",
}
setup, run = it_unwrap.setup, it_unwrap.run
