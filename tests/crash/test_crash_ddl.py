"""Kill -9 in the middle of renames and drops that a replica follows: nothing is lost, and nothing is applied twice."""

from __future__ import annotations

import pytest

from tailrace.connectors.postgres.ddl.event_triggers import install_statements
from tests.crash.rig import Rig

pytestmark = pytest.mark.timeout(900)

# The columns of `moving` are renamed, its name goes away and comes back, and a rebuilt table takes its place.
SHUFFLE = """
INSERT INTO moving VALUES ({n}, 'a');
ALTER TABLE moving RENAME v TO w;
UPDATE moving SET w = w || '{n}';
ALTER TABLE moving RENAME TO elsewhere;
INSERT INTO elsewhere VALUES ({n} + 1, 'b');
CREATE TABLE moving (id int PRIMARY KEY, more int);
INSERT INTO moving VALUES ({n}, {n});
DROP TABLE moving;
ALTER TABLE elsewhere RENAME TO moving;
ALTER TABLE moving RENAME w TO v;
CREATE TABLE rebuilt (LIKE moving INCLUDING ALL);
INSERT INTO rebuilt SELECT * FROM moving WHERE id <> {n};
DROP TABLE moving;
ALTER TABLE rebuilt RENAME TO moving;
DELETE FROM moving WHERE id = 2;
"""


@pytest.mark.parametrize(
    ("place", "nth", "driver"),
    [
        ("after-copy", 1, False),
        ("after-copy", 1, True),
        ("after-copy", 2, True),
        ("after-table", 3, False),
        ("after-write", 1, True),
    ],
)
def test_killed_between_renames(new_rig: Rig, place: str, nth: int, driver: bool) -> None:
    with new_rig.connect() as connection:
        connection.execute(install_statements().encode())
        connection.execute("CREATE TABLE moving (id int PRIMARY KEY, v text)")
        connection.execute("INSERT INTO moving SELECT n, 'first' FROM generate_series(1, 5) n")
        new_rig.start()
        new_rig.await_all_read()
        new_rig.arm(place, nth, driver=driver)
        connection.execute(SHUFFLE.format(n=10).encode())
        new_rig.await_kill()
        for statement in filter(str.strip, SHUFFLE.format(n=20).split(";")):
            connection.execute(statement.encode())
    new_rig.await_all_read()
    new_rig.check("moving")
    assert not new_rig.replica_rows("elsewhere") + new_rig.replica_rows("rebuilt"), "both names are gone"
