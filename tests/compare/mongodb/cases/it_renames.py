"""Renamed fields in every place, also to names with dashes, which Avro's rules change."""

from tests.compare.mongodb.cases import it_fields

PROPERTIES = {
    **{name: value for name, value in it_fields.PROPERTIES.items() if name != "field.exclude.list"},
    "field.renames": " *.c1.name:new_name , dbA.c1.active:new-active,*.c1.address.number:new_number,dbA.c1.missing:m,"
    "*.c1.addresses.number:no-1,dbA.c1.people.address.street:way,dbA.c1.gone.deep.er:low,dbA.c1.field-with-dash:dash_less",
}
setup, run = it_fields.setup, it_fields.run
