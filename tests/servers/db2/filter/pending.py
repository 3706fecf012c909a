"""Tables that ALTER TABLE has left in "reorg pending": until REORG TABLE their rows can be neither read nor written."""

import re

ALTERED = re.compile(r"^\s*ALTER TABLE\s+(\S+)\s+(?:DROP COLUMN|ALTER COLUMN\s+\S+\s+SET DATA TYPE)\b", re.I)
REORGANISED = re.compile(r"^\s*CALL SYSPROC\.ADMIN_CMD\('REORG TABLE (\S+?)'\)\s*$", re.I)
REFUSED = "CALL ASNCDCLOG.REORG_PENDING('{}')"
NOTHING = "SET ISOLATION RESET"


class Pending:
    """The tables, by their names without quotes."""

    def __init__(self):
        self.tables = set()

    def answered(self, sql):
        """The statement, or what takes its place. A statement that fails leaves its table pending as well."""
        ended = REORGANISED.match(sql)
        if ended:
            self.tables.discard(bare(ended[1]))
            return NOTHING
        altered = ALTERED.match(sql)
        if altered:
            self.tables.add(bare(altered[1]))
            return sql
        named = bare(sql)
        for table in self.tables:
            if re.search(rf"\b(FROM|JOIN|INTO|UPDATE)\s+{re.escape(table)}(?![\w.])", named):
                return REFUSED.format(table)
        return sql


def bare(text):
    """A text without quotes of names."""
    return text.replace('"', "")
