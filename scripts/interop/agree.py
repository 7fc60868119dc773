"""Reads every table of runs with another program, and compares with talaria query.

agree.py READER RUN...  READER: pyarrow, polars, duckdb, datasets
agree.py views RUN...   run the file of --print-views in DuckDB's client instead

Each table is read with one call. Names, order and types of the columns have to
be the same, and so has every value of every row, whatever the order of the
rows. Set TALARIA to the talaria to compare with, if it is not in PATH.
"""

import base64
import collections
import datetime
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

TABLES = "attempts tasks messages tool_calls spans rewards sequences".split()
TALARIA = os.environ.get("TALARIA", "talaria")

# A type is a word of docs/recording.md, ("list", TYPE), or
# ("struct", ((NAME, TYPE), ...)).


def read_pyarrow(folder):
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(folder)
    return [(f.name, arrow_type(f.type)) for f in table.schema], table.to_pylist()


def arrow_type(t):
    import pyarrow.types as is_a

    if is_a.is_list(t) or is_a.is_large_list(t):
        return ("list", arrow_type(t.value_type))
    if is_a.is_struct(t):
        return ("struct", tuple((f.name, arrow_type(f.type)) for f in t))
    return {
        "string": "text", "large_string": "text", "bool": "bool", "int32": "int32", "int64": "int64",
        "float": "float", "double": "double", "timestamp[us, tz=UTC]": "time", "binary": "bytes", "large_binary": "bytes",
    }[str(t)]


def read_polars(folder):
    import polars

    table = polars.read_parquet(folder)
    return [(name, polars_type(t)) for name, t in table.schema.items()], table.to_dicts()


def polars_type(t):
    import polars

    if isinstance(t, polars.List):
        return ("list", polars_type(t.inner))
    if isinstance(t, polars.Struct):
        return ("struct", tuple((f.name, polars_type(f.dtype)) for f in t.fields))
    return {
        polars.String: "text", polars.Boolean: "bool", polars.Int32: "int32", polars.Int64: "int64",
        polars.Float32: "float", polars.Float64: "double", polars.Datetime("us", "UTC"): "time", polars.Binary: "bytes",
    }[t]


def read_duckdb(folder):
    import duckdb

    return duckdb_rows(duckdb.connect(), f"FROM read_parquet('{folder}/*.parquet')")


def duckdb_rows(db, sql):
    relation = db.sql(sql)
    columns = [(name, duckdb_type(t)) for name, t in zip(relation.columns, relation.types)]
    return columns, [dict(zip(relation.columns, row)) for row in relation.fetchall()]


def duckdb_type(t):
    if str(t) == "JSON":  # text to the client, and what it says to talaria
        return "json"
    if t.id == "list":
        return ("list", duckdb_type(t.child))
    if t.id == "struct":
        return ("struct", tuple((name, duckdb_type(child)) for name, child in t.children))
    return {
        "varchar": "text", "boolean": "bool", "integer": "int32", "bigint": "int64", "float": "float", "double": "double",
        "timestamp with time zone": "time", "blob": "bytes", "hugeint": "hugeint",
    }[t.id]


def read_datasets(folder):
    import datasets

    datasets.disable_progress_bars()
    table = datasets.load_dataset(folder, split="train")
    return [(name, feature_type(f)) for name, f in table.features.items()], table.to_list()


def feature_type(f):
    import datasets

    if isinstance(f, datasets.Value):
        return arrow_type(f.pa_type)
    if isinstance(f, dict):
        return ("struct", tuple((name, feature_type(inner)) for name, inner in f.items()))
    return ("list", feature_type(f.feature))


READERS = {"pyarrow": read_pyarrow, "polars": read_polars, "duckdb": read_duckdb, "datasets": read_datasets}


def query(runs, relation):
    """What talaria query says of a relation."""
    described = talaria(runs, f"DESCRIBE {relation}")
    columns = [(row["column_name"], sql_type(row["column_type"])) for row in described]
    binary = [name for name, t in columns if t == "bytes"]
    encoded = ", ".join(f"to_base64({name}) AS {name}" for name in binary)
    rows = talaria(runs, f"SELECT * {f'REPLACE ({encoded})' if binary else ''} FROM {relation}")
    return columns, [{name: from_json(t, row[name]) for name, t in columns} for row in rows]


def talaria(runs, sql):
    out = subprocess.run([TALARIA, "query", *runs, sql, "--format", "jsonl"], check=True, stdout=subprocess.PIPE).stdout
    return [json.loads(line) for line in out.decode().split("\n") if line]


def sql_type(text):
    import duckdb

    return duckdb_type(duckdb.sqltype(text))


def from_json(t, v):
    if v is None:
        return None
    if t == "time":
        return datetime.datetime.fromisoformat(v)
    if t == "bytes":
        return base64.b64decode(v)
    if t in ("float", "double"):
        return float(v)
    if t[0] == "list":
        return [from_json(t[1], e) for e in v]
    if t[0] == "struct":
        return {name: from_json(inner, v[name]) for name, inner in t[1]}
    return v


def canonical(t, v, digits=None):
    """A value as text that is the same exactly for the same value of the same type."""
    if v is None:
        return "null"
    if t == "time":
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return str((v - epoch) // datetime.timedelta(microseconds=1))
    if t == "float":
        return struct.pack("<f", v).hex()
    if t == "json":
        return json.dumps(json.loads(v) if isinstance(v, str) else v, sort_keys=True)
    if t == "double":
        return repr(v) if digits is None else f"{v:.{digits}g}"
    if t[0] == "list":
        return "[" + ", ".join(canonical(t[1], e, digits) for e in v) + "]"
    if t[0] == "struct":
        return "{" + ", ".join(f"{name}: {canonical(inner, v[name], digits)}" for name, inner in t[1]) + "}"
    return repr(bytes(v) if t == "bytes" else v)


def differences(want, got, digits=None):
    """What tells two relations apart, in words."""
    (columns, _), (others, _) = want, got
    if columns != others:
        yield f"columns: talaria has {[c for c in columns if c not in others]}, it has {[c for c in others if c not in columns]}"
        if sorted(columns) == sorted(others):
            yield "in another order"
        return
    counts = [collections.Counter(lines(*relation, digits)) for relation in (want, got)]
    for name, more in ("talaria", counts[0] - counts[1]), ("it", counts[1] - counts[0]):
        for line in list(more)[:2]:
            yield f"only {name} has {line}"


def lines(columns, rows, digits):
    return ["; ".join(f"{name}={canonical(t, row[name], digits)}" for name, t in columns) for row in rows]


def parts(run, table):
    return list(pathlib.Path(run, table).glob("*.parquet"))


def compare_tables(reader, run):
    for table in TABLES:
        if not parts(run, table):
            continue
        yield table, query([run], f"all_{table}"), READERS[reader](os.path.join(run, table)), None


def compare_views(runs):
    import duckdb

    db = duckdb.connect()
    views = subprocess.run([TALARIA, "query", *runs, "--print-views"], check=True, stdout=subprocess.PIPE).stdout
    db.execute(views.decode())
    names = [row[0] for row in db.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()]
    for name in sorted(names):
        if not name.startswith("_"):
            # Sums of doubles depend on the order in which threads come.
            yield name, query(runs, name), duckdb_rows(db, f"FROM {name}"), 12


def main(reader, *runs):
    compared = compare_views(runs) if reader == "views" else (c for run in runs for c in compare_tables(reader, run))
    wrong = 0
    for name, want, got, digits in compared:
        said = list(differences(want, got, digits))
        wrong += bool(said)
        print(f"{name}: {len(got[1])} rows of {len(got[0])} columns: {'; '.join(said)[:3000] or 'the same'}")
    if wrong:
        sys.exit(f"{reader} and talaria query do not agree")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    os.environ["TZ"] = "America/St_Johns"  # no time may depend on where it is read
    with tempfile.TemporaryDirectory() as cache:
        os.environ.update(HF_HOME=cache, HF_HUB_OFFLINE="1")
        main(*sys.argv[1:])
