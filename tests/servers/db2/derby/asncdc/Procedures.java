package asncdc;

import java.nio.ByteBuffer;
import java.sql.Blob;
import java.sql.Clob;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.Arrays;
import java.util.Map;

import org.apache.derby.iapi.sql.conn.ConnectionUtil;

/** What schema.sql declares to SQL: ADDTABLE, REMOVETABLE, ASNCDCSERVICES and the functions the triggers use. */
public final class Procedures {

    private Procedures() {
    }

    /** CALL ASNCDC.ADDTABLE('S','T'): makes the change table and the registration; 'reinit' makes it active. */
    public static void addTable(String schema, String table) throws SQLException {
        String changes = "CDC_" + schema + "_" + table;
        Connection connection = DriverManager.getConnection("jdbc:default:connection");
        try (Statement statement = connection.createStatement()) {
            Names source = new Names(schema, table);
            statement.execute("CREATE TABLE " + new Names("ASNCDC", changes) + " AS SELECT "
                    + "CAST(X'' AS VARCHAR(16) FOR BIT DATA) AS IBMSNAP_COMMITSEQ, "
                    + "CAST(X'' AS VARCHAR(16) FOR BIT DATA) AS IBMSNAP_INTENTSEQ, "
                    + "CAST('' AS CHAR(1)) AS IBMSNAP_OPERATION" + captured(connection, source)
                    + " FROM " + source + " t WITH NO DATA");
            // The second index lets Derby find a row's predecessor as quickly as its successor.
            for (String order : new String[]{ "", " DESC" }) {
                statement.execute("CREATE " + (order.isEmpty() ? "UNIQUE " : "") + "INDEX "
                        + new Names("ASNCDC", (order.isEmpty() ? "IX" : "DX") + changes) + " ON " + new Names("ASNCDC", changes)
                        + "(IBMSNAP_COMMITSEQ" + order + ", IBMSNAP_INTENTSEQ" + order + ")");
            }
        }
        update(connection, "INSERT INTO ASNCDC.IBMSNAP_REGISTER (SOURCE_OWNER, SOURCE_TABLE, SOURCE_VIEW_QUAL, GLOBAL_RECORD,"
                + " SOURCE_STRUCTURE, SOURCE_CONDENSED, SOURCE_COMPLETE, CD_OWNER, CD_TABLE, PHYS_CHANGE_OWNER, PHYS_CHANGE_TABLE,"
                + " DISABLE_REFRESH, ARCH_LEVEL, CONFLICT_LEVEL, CHG_UPD_TO_DEL_INS, CHGONLY, RECAPTURE, OPTION_FLAGS,"
                + " STOP_ON_ERROR, STATE) VALUES (?, ?, 0, 'N', 1, 'Y', 'Y', 'ASNCDC', ?, 'ASNCDC', ?, 0, '0801', '0',"
                + " 'Y', 'N', 'Y', 'NNNN', 'Y', 'A')", schema, table, changes, changes);
        update(connection, "INSERT INTO ASNCDC.IBMSNAP_PRUNCNTL (TARGET_SERVER, TARGET_OWNER, TARGET_TABLE, SOURCE_OWNER,"
                + " SOURCE_TABLE, SOURCE_VIEW_QUAL, APPLY_QUAL, SET_NAME, CNTL_SERVER, TARGET_STRUCTURE, CNTL_ALIAS,"
                + " PHYS_CHANGE_OWNER, PHYS_CHANGE_TABLE, MAP_ID) VALUES ('KAFKA', ?, ?, ?, ?, 0, 'KAFKAQUAL', 'SET001',"
                + " 'KAFKA', 8, 'KAFKA', 'ASNCDC', ?, ?)",
                schema, table, schema, table, changes, Long.toString(System.nanoTime() % 10_000_000_000L));
        connection.close();
    }

    /** The columns of a table in its change table, each after a comma: of a large object it has an indicator. */
    private static String captured(Connection connection, Names table) throws SQLException {
        StringBuilder columns = new StringBuilder();
        for (Map.Entry<String, String> column : Capture.types(connection, table).entrySet()) {
            String name = Names.quoted(column.getKey());
            columns.append(", ").append(Capture.isLarge(column.getValue()) ? "CAST(NULL AS CHAR(1)) AS " + name : "t." + name);
        }
        return columns.toString();
    }

    /** The indicator of a large object in an update: U if it has changed. */
    public static String changed(Clob before, Clob after) throws SQLException {
        return before == null ? (after == null ? null : "U")
                : after == null || before.length() != after.length()
                        || !before.getSubString(1, (int) before.length()).equals(after.getSubString(1, (int) after.length())) ? "U" : null;
    }

    /** See changed(Clob, Clob). */
    public static String changed(Blob before, Blob after) throws SQLException {
        return before == null ? (after == null ? null : "U")
                : after == null || before.length() != after.length()
                        || !Arrays.equals(before.getBytes(1, (int) before.length()), after.getBytes(1, (int) after.length())) ? "U" : null;
    }

    /** CALL ASNCDC.REMOVETABLE('S','T'): ends the capture of a table and drops its change table. */
    public static void removeTable(String schema, String table) throws SQLException {
        Connection connection = DriverManager.getConnection("jdbc:default:connection");
        Capture.unhook(connection, new Registration(schema, table, null, "I", null));
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE " + new Names("ASNCDC", "CDC_" + schema + "_" + table));
        }
        for (String control : new String[]{ "REGISTER", "PRUNCNTL" }) {
            update(connection, "DELETE FROM ASNCDC.IBMSNAP_" + control + " WHERE SOURCE_OWNER = ? AND SOURCE_TABLE = ?",
                    schema, table);
        }
        connection.close();
    }

    /** VALUES ASNCDC.ASNCDCSERVICES('start' | 'stop' | 'status' | 'reinit' | 'cold', 'asncdc'). */
    public static String services(String command, String controlSchema) throws SQLException {
        return Capture.command(command, databaseName());
    }

    /** What Db2 answers for a table that was altered and not reorganised yet. */
    public static void reorgPending(String table) throws SQLException {
        throw new SQLException("Operation not allowed for reason code \"7\" on table \"" + table + "\".", "38668");
    }

    /** Identifies the running transaction in the rows that triggers write down. */
    public static String transactionId() throws SQLException {
        return ConnectionUtil.getCurrentLCC().getTransactionExecute().getActiveStateTxIdString();
    }

    /** The log sequence number of the next change. */
    public static byte[] nextLsn() {
        return Lsn.next();
    }

    /** Rows of DatabaseMetaData.getColumns(), which the stand-in for SYSCAT.COLUMNS selects from. */
    public static ResultSet columns() throws SQLException {
        return DriverManager.getConnection("jdbc:default:connection").getMetaData().getColumns(null, "%", "%", "%");
    }

    /** Rows of DatabaseMetaData.getPrimaryKeys() of every table, for SYSCAT.COLUMNS.KEYSEQ. */
    public static ResultSet keys() throws SQLException {
        return DriverManager.getConnection("jdbc:default:connection").createStatement().executeQuery(
                "SELECT s.SCHEMANAME, t.TABLENAME, k.CONSTRAINTNAME, g.DESCRIPTOR FROM SYS.SYSCONSTRAINTS k"
                        + " JOIN SYS.SYSKEYS y ON y.CONSTRAINTID = k.CONSTRAINTID"
                        + " JOIN SYS.SYSCONGLOMERATES g ON g.CONGLOMERATEID = y.CONGLOMERATEID"
                        + " JOIN SYS.SYSTABLES t ON t.TABLEID = k.TABLEID JOIN SYS.SYSSCHEMAS s ON s.SCHEMAID = t.SCHEMAID"
                        + " WHERE k.TYPE = 'P'");
    }

    /** Every index with the kind of its constraint (P: primary key), for SYSCAT.INDEXES. */
    public static ResultSet indexes() throws SQLException {
        return DriverManager.getConnection("jdbc:default:connection").createStatement().executeQuery(
                "SELECT s.SCHEMANAME, t.TABLENAME, g.CONGLOMERATENAME, k.TYPE, g.DESCRIPTOR, g.CONGLOMERATEID FROM SYS.SYSCONGLOMERATES g"
                        + " JOIN SYS.SYSTABLES t ON t.TABLEID = g.TABLEID JOIN SYS.SYSSCHEMAS s ON s.SCHEMAID = t.SCHEMAID"
                        + " LEFT JOIN SYS.SYSKEYS y ON y.CONGLOMERATEID = g.CONGLOMERATEID"
                        + " LEFT JOIN SYS.SYSCONSTRAINTS k ON k.CONSTRAINTID = y.CONSTRAINTID"
                        + " WHERE g.ISINDEX AND t.TABLETYPE = 'T'");
    }

    /** A log sequence number of sixteen bytes. */
    public static byte[] lsn(long number) {
        return ByteBuffer.allocate(16).putLong(8, number).array();
    }

    /** When a table was made: of Derby's number of it, the time when Derby was started and a count. */
    public static Timestamp createTime(String number) {
        String[] parts = number.split("-");
        return new Timestamp(Long.parseLong(parts[1] + parts[2] + parts[3], 16) + Long.parseLong(parts[0], 16) % 1_000_000);
    }

    /** The place of a column, counted from 1, in an index description such as "UNIQUE BTREE (3, 1)"; null if not in it. */
    public static Integer keyPosition(String descriptor, int column) {
        if (descriptor == null) {
            return null;
        }
        String[] parts = descriptor.replaceAll(".*\\(|\\).*", "").split(",");
        for (int i = 0; i < parts.length; i++) {
            if (parts[i].trim().split(" ")[0].equals(Integer.toString(column))) {
                return i + 1;
            }
        }
        return null;
    }

    private static String databaseName() throws SQLException {
        return ConnectionUtil.getCurrentLCC().getDbname();
    }

    private static void update(Connection connection, String sql, String... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) {
                statement.setString(i + 1, values[i]);
            }
            statement.executeUpdate();
        }
    }
}
