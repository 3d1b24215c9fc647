"""The tables of the current version, for building queries; `migrations` makes them."""

from operator import index

import sqlalchemy as sa


class Whole(sa.TypeDecorator[int]):
    """A whole number of any kind: SQLite would keep, and look for, one of NumPy's as bytes."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: sa.Dialect) -> int | None:  # noqa: ARG002
        return None if value is None else index(value)


METADATA = sa.MetaData()

version = sa.Table("cloakwork_version", METADATA, sa.Column("version", sa.Integer, nullable=False))

readings = sa.Table(
    "readings",
    METADATA,
    sa.Column("site", sa.Text, primary_key=True),
    sa.Column("sensor", sa.Text, primary_key=True),
    sa.Column("seq", Whole, primary_key=True, autoincrement=False),
    sa.Column("time", Whole, nullable=False),
    sa.Column("value", Whole, nullable=False),
    sa.Column("received", Whole, nullable=False),
)

alarms = sa.Table(
    "alarms",
    METADATA,
    sa.Column("site", sa.Text, primary_key=True),
    sa.Column("sensor", sa.Text, primary_key=True),
    sa.Column("seq", Whole, primary_key=True, autoincrement=False),
    sa.Column("received", Whole, nullable=False),
)

# One row for each time that has readings. `solved`: sensors of its result, 0 without one. `late`: 0 unless more have
# readings than the result is from, else 1 and how many results since then have left them out all the same.
frames = sa.Table(
    "frames",
    METADATA,
    sa.Column("site", sa.Text, primary_key=True),
    sa.Column("time", Whole, primary_key=True, autoincrement=False),
    sa.Column("solved", Whole, nullable=False),
    sa.Column("late", Whole, nullable=False),
)

# How often readings of a site were removed: what was made before the last time may be made from some of them.
erasures = sa.Table(
    "erasures",
    METADATA,
    sa.Column("site", sa.Text, primary_key=True),
    sa.Column("count", Whole, nullable=False),
)

# `map` stands last, so that SQLite reads the others without it.
results = sa.Table(
    "results",
    METADATA,
    sa.Column("site", sa.Text, primary_key=True),
    sa.Column("time", Whole, primary_key=True, autoincrement=False),
    sa.Column("sensors", Whole, nullable=False),
    sa.Column("expected", Whole, nullable=False),
    sa.Column("estimator", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("gap", sa.Double),
    sa.Column("fit", sa.Double),
    sa.Column("set_aside", sa.Text, nullable=False),
    sa.Column("counts", sa.Text),
    sa.Column("sources", sa.Text, nullable=False),
    sa.Column("solved", Whole, nullable=False),
    sa.Column("took_ms", sa.Double),
    sa.Column("map", sa.LargeBinary),
)

reports = sa.Table(
    "reports",
    METADATA,
    sa.Column("site", sa.Text, primary_key=True),
    sa.Column("sensor", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("used", Whole, nullable=False),
    sa.Column("allowed", Whole, nullable=False),
    sa.Column("received", Whole, nullable=False),
)

# The last report of each sensor in each slot of a few seconds: a chart needs no more, and devices report all the time.
report_history = sa.Table(
    "report_history",
    METADATA,
    sa.Column("site", sa.Text, primary_key=True),
    sa.Column("slot", Whole, primary_key=True, autoincrement=False),
    sa.Column("sensor", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("used", Whole, nullable=False),
    sa.Column("allowed", Whole, nullable=False),
    sa.Column("received", Whole, nullable=False),
)

problems = sa.Table(
    "problems",
    METADATA,
    sa.Column("site", sa.Text, primary_key=True),
    sa.Column("sensor", sa.Text, primary_key=True),
    sa.Column("reason", sa.Text, primary_key=True),
    sa.Column("count", Whole, nullable=False),
    sa.Column("last", Whole, nullable=False),
)

tokens = sa.Table(
    "tokens",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("site", sa.Text),
    sa.Column("sensor", sa.Text),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("made", Whole, nullable=False),
    sa.Column("revoked", Whole),
)
