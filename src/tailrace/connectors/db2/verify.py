"""Probes of `verify` for Db2; those of capture are in verify_capture.py."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from tailrace.connectors.db2.client import connect
from tailrace.connectors.db2.log.end import control
from tailrace.connectors.db2.snapshot import DIALECT
from tailrace.connectors.db2.statements import text
from tailrace.connectors.db2.verify_bench import Db2Bench
from tailrace.connectors.db2.verify_capture import DUMPED, capture_probes
from tailrace.connectors.probe import Answer, Expectation, Probe
from tailrace.connectors.sql_bench import BLOCKED_TABLES
from tailrace.override import override

log = logging.getLogger(__name__)
FAILURES = DIALECT.failures

_INSTANCE = "SELECT SERVICE_LEVEL, FIXPACK_NUM, INST_PTR_SIZE FROM TABLE(SYSPROC.ENV_GET_INST_INFO())"
_SYSTEM = "SELECT OS_NAME, OS_VERSION FROM TABLE(SYSPROC.ENV_GET_SYS_INFO())"
_CONFIGURED = (
    *("codepage", "codeset", "collate_info", "cur_commit", "locktimeout", "logarchmeth1", "restrict_access"),
    *(
        "dec_to_char_fmt",
        "date_compat",
        "varchar2_compat",
        "number_compat",
        "hadr_db_role",
        "pagesize",
        "extended_row_sz",
    ),
)
_PARAMETERS = (
    *(
        "RETENTION_LIMIT",
        "COMMIT_INTERVAL",
        "SLEEP_INTERVAL",
        "PRUNE_INTERVAL",
        "AUTOPRUNE",
        "STARTMODE",
        "MEMORY_LIMIT",
    ),
)
_LATENESS = """
SELECT TIMESTAMPDIFF(2, CHAR(CURRENT TIMESTAMP - SYNCHTIME)) FROM {control}.IBMSNAP_REGISTER WHERE GLOBAL_RECORD = 'Y'
"""
_PRUNED = "SELECT COUNT(*) FROM {control}.IBMSNAP_PRUNE_SET"
_STATES = "SELECT STATE, COUNT(*) FROM {control}.IBMSNAP_REGISTER WHERE SOURCE_OWNER <> '' GROUP BY STATE"
_APPLIES = "Apply prunes change tables of this server, so a stopped pipeline may lose changes before RETENTION_LIMIT."


class Db2Probes(Db2Bench):
    """The bench with its probes."""

    own_tables = (*BLOCKED_TABLES, DUMPED)

    @override
    def probes(self) -> Sequence[Probe]:
        program = (
            Expectation("apply_sets", (0, "code -204 42704"), _APPLIES),
            Expectation(
                "states_other_than_active", ({},), "Changes of the tables of these registrations are not captured."
            ),
        )
        return [
            Probe(
                "identity.server",
                "Which server is this, and how is it set?",
                "Behaviour depends on it.",
                self._identity,
                writes=False,
            ),
            Probe(
                "capture.program",
                "How is the capture program set?",
                "Changes are captured.",
                self._program,
                program,
                writes=False,
            ),
            *capture_probes(self),
            *super().probes(),
        ]

    def _identity(self) -> Answer:
        connection = connect(self.config, "tailrace verify")
        product = connection.product()
        connection.close()
        about = {"product": product}
        about |= {
            each: self.answer_or_code(f"SELECT VALUE FROM SYSIBMADM.DBCFG WHERE NAME = {text(each)}")
            for each in _CONFIGURED
        }
        about |= {"instance": self._row(_INSTANCE), "system": self._row(_SYSTEM)}
        return Answer(about=about)

    def _row(self, query: str) -> Any:
        try:
            return [str(each).strip() for each in self.main.rows(query)[0]]
        except FAILURES.driver_error as error:
            return f"code {self.code(error)}"

    def _program(self) -> Answer:
        place = control(self.config)
        about = {each: self.answer_or_code(f"SELECT {each} FROM {place}.IBMSNAP_CAPPARMS") for each in _PARAMETERS}
        about["seconds_behind"] = self.answer_or_code(_LATENESS.format(control=place))
        states = {str(state): int(count) for state, count in self.main.rows(_STATES.format(control=place))}
        other = {state: count for state, count in states.items() if state != "A"}
        return Answer(
            {"apply_sets": self.answer_or_code(_PRUNED.format(control=place)), "states_other_than_active": other}, about
        )
