"""The tables, as numbered steps of plain SQL. A released step never changes: a new version is a new step.

`WORDS` are the few words in which the two databases differ; in a statement they stand in braces. Many rows travel as
one JSON parameter, `{rows}`: a parameter for each value would take most of the time.
"""

WORDS = {
    "sqlite": {
        "integer": "INTEGER",
        "real": "REAL",
        "text": "TEXT",
        "bytes": "BLOB",
        "keyed": "STRICT, WITHOUT ROWID",  # the table is its own index; SQLite would store any type in any column
        "strict": "STRICT",
        "rows": "json_each(:rows) AS item",
        "among_rows": "IN (SELECT value FROM json_each(:rows))",
        "whole": "",  # a cast would make a number that does not fit into one that does
        "lock": "",  # one transaction writes at a time
    },
    "postgresql": {
        "integer": "BIGINT",
        "real": "DOUBLE PRECISION",
        "text": 'TEXT COLLATE "C"',  # names sort by their bytes, as in SQLite
        "bytes": "BYTEA",
        "keyed": "",
        "strict": "",
        "rows": "jsonb_array_elements(CAST(:rows AS jsonb)) AS item(value)",
        # an array, since the planner takes a join for larger than it is and reads the whole table
        "among_rows": "= ANY (CAST(translate(:rows, '[]', '{}') AS BIGINT[]))",
        "whole": "::bigint",
        "lock": "FOR UPDATE",
    },
}
STEPS: tuple[str, ...] = (
    # `contradicted` is when a second value arrived under the number of a reading. A frame is the readings of one time:
    # it waits to be recovered while `recovered`, the readings of its last result, is less than `readings`. `erasures`
    # counts: what was computed before the last one may depend on erased readings. `report_history` has the last report
    # of each sensor in each slot of a few seconds. `map` is last, so that SQLite reads the others without it.
    """
    CREATE TABLE readings (
        site {text} NOT NULL, sensor {text} NOT NULL, seq {integer} NOT NULL, time {integer} NOT NULL,
        value {integer} NOT NULL, received {integer} NOT NULL, contradicted {integer},
        PRIMARY KEY (site, sensor, seq)) {keyed};
    CREATE INDEX readings_by_time ON readings (site, time, sensor, seq);
    CREATE INDEX readings_of_sensor ON readings (site, sensor, time);
    CREATE INDEX readings_contradicted ON readings (site, sensor, seq) WHERE contradicted IS NOT NULL;
    CREATE TABLE frames (
        site {text} NOT NULL, time {integer} NOT NULL, readings {integer} NOT NULL, recovered {integer} NOT NULL,
        PRIMARY KEY (site, time)) {keyed};
    CREATE INDEX frames_waiting ON frames (site, time) WHERE recovered < readings;
    CREATE TABLE erasures (site {text} NOT NULL PRIMARY KEY, count {integer} NOT NULL) {keyed};
    CREATE TABLE results (
        site {text} NOT NULL, time {integer} NOT NULL, sensors {integer} NOT NULL, failed {integer} NOT NULL,
        solved {integer} NOT NULL, settled {integer} NOT NULL, labels {integer}, fit {real}, body {text} NOT NULL,
        map {bytes}, PRIMARY KEY (site, time)) {strict};
    CREATE TABLE reports (
        site {text} NOT NULL, sensor {text} NOT NULL, state {text} NOT NULL, used {integer} NOT NULL,
        allowed {integer} NOT NULL, received {integer} NOT NULL, PRIMARY KEY (site, sensor)) {keyed};
    CREATE TABLE report_history (
        site {text} NOT NULL, slot {integer} NOT NULL, sensor {text} NOT NULL, state {text} NOT NULL,
        used {integer} NOT NULL, allowed {integer} NOT NULL, received {integer} NOT NULL,
        PRIMARY KEY (site, slot, sensor)) {keyed};
    CREATE TABLE problems (
        site {text} NOT NULL, sensor {text} NOT NULL, reason {text} NOT NULL, count {integer} NOT NULL,
        last {integer} NOT NULL, PRIMARY KEY (site, sensor, reason)) {keyed};
    CREATE TABLE physics_checks (
        site {text} NOT NULL PRIMARY KEY, model {text} NOT NULL, time {integer} NOT NULL, state {bytes} NOT NULL,
        faults {text} NOT NULL) {keyed};
    CREATE TABLE plans (
        site {text} NOT NULL, received {integer} NOT NULL, scale {text} NOT NULL, PRIMARY KEY (site, received)) {keyed};
    CREATE TABLE tokens (
        id {text} NOT NULL PRIMARY KEY, digest {text} NOT NULL UNIQUE, role {text} NOT NULL, site {text},
        sensor {text}, label {text} NOT NULL, made {integer} NOT NULL, revoked {integer}) {keyed}
    """,
)
# Expected sizes for SQLite's planner: without statistics it assumes few readings per site, and reads them all.
STATISTICS = (
    ("readings", "readings", "1000000 1000000 20000 1"),
    ("readings", "readings_by_time", "1000000 1000000 50 1 1"),
    ("readings", "readings_of_sensor", "1000000 1000000 20000 1"),
    ("readings", "readings_contradicted", "100 100 10 1"),
    ("frames", "frames", "20000 20000 1"),
    ("frames", "frames_waiting", "100 100 1"),
    ("results", "sqlite_autoindex_results_1", "20000 20000 1"),
)
