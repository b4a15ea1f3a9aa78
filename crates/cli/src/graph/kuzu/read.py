"""Writes the tables of a Kuzu database as CSV files; `isolith graph import --from-kuzu` runs it.

Arguments: the database and a folder for the files. Each line of standard output is a JSON object: one per
finished table, or the reason why there is none.
"""

import sys

# A module named like one below must not be taken from the working folder.
sys.path[:] = [folder for folder in sys.path if folder]

import csv
import json
import os

INTEGERS = {"INT8", "INT16", "INT32", "INT64", "INT128", "UINT8", "UINT16", "UINT32", "UINT64", "SERIAL"}
FLOATS = {"FLOAT", "DOUBLE"}
LARGEST = 2**63 - 1


class Refused(Exception):
    """What cannot be copied, and what to do about it."""

    def __init__(self, message, hint=""):
        super().__init__(message)
        self.hint = hint


def say(**fields):
    print(json.dumps(fields), flush=True)


def scalar(kind):
    """The type of a single value in Cypher's constraints, and that of its column; None if there is none."""
    if kind == "BOOL":
        return "BOOLEAN", "bool"
    if kind in INTEGERS:
        return "INTEGER", "int"
    if kind in FLOATS or kind.startswith("DECIMAL"):
        return "FLOAT | INTEGER", "float"
    if kind == "STRING" or converted(kind):
        return "STRING", "json"
    return None


def converted(kind):
    """How values that Isolith does not have are kept; None for others."""
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return "text, as in ISO 8601"
    return {"UUID": "text", "BLOB": "hexadecimal text", "INTERVAL": "text, as Kuzu shows it"}.get(kind)


def element(kind):
    """The type of the items of a list; None if it is no list of single values."""
    if not kind.endswith("]"):
        return None
    inner = kind[: kind.rindex("[")]
    return scalar(inner)


class Column:
    def __init__(self, table, name, kind, is_key=False):
        self.table, self.name, self.kind, self.is_key = table, name, kind, is_key
        single, items = scalar(kind), element(kind)
        if single:
            self.type, self.cell = single
            if is_key and self.cell == "json":
                self.cell = "string"
        elif items:
            lists = ["LIST<%s NOT NULL>" % each for each in items[0].split(" | ")]
            self.type, self.cell = " | ".join(lists), "json"
        else:
            self.type, self.cell = "STRING", "json"
        self.is_nested = not (single or items)
        kept = "text in JSON" if self.is_nested else converted(kind.split("[")[0])
        if kind.startswith("DECIMAL"):
            kept = "a float"
        self.note = "%s.%s: %s is kept as %s" % (table, name, kind, kept) if kept else None

    def rule_name(self):
        """The name of the type's constraint; it says more than the property type where that matters."""
        base, bracket, size = self.kind.partition("[")
        is_usual = base in {"BOOL", "INT64", "DOUBLE", "STRING"} and size in {"", "]"}
        is_known = base in (INTEGERS | FLOATS | {"BOOL", "STRING", "UUID", "DATE"}) - {"SERIAL"}
        is_known = is_known or base.startswith(("DECIMAL", "TIMESTAMP"))
        return self.name if is_usual or not is_known or self.is_nested else "%s %s" % (self.name, self.kind)

    def read_from(self, variable):
        """The expression that reads it. Python's value of an interval has no months."""
        value = "%s.%s" % (variable, name(self.name))
        return "cast(%s AS STRING)" % value if self.kind == "INTERVAL" else value

    def header(self):
        return "%s:%s" % (self.name, self.cell)

    def text(self, value):
        """The cell for a value."""
        if value is None:
            return ""
        if self.cell == "int" and not -LARGEST - 1 <= value <= LARGEST:
            raise Refused("%s.%s: %d does not fit into 64 bits" % (self.table, self.name, value))
        if self.cell == "bool":
            return "true" if value else "false"
        if self.cell == "float":
            return repr(float(value))
        if self.cell == "string":
            if str(value) == "":
                raise Refused("%s.%s: a key is empty" % (self.table, self.name))
            return str(value)
        if self.cell == "json":
            if self.is_nested:
                value = json.dumps(value, ensure_ascii=False, default=plain)
            elif isinstance(value, list):
                if None in value:
                    raise Refused("%s.%s: a list contains null" % (self.table, self.name))
                kind = self.kind[: self.kind.rindex("[")]
                value = [float(item) if scalar(kind)[1] == "float" else plain(item) for item in value]
            else:
                value = plain(value)
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
        return str(value)


def plain(value):
    """A value that JSON has; dates and the like become text."""
    if isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def name(text):
    return "`" + text.replace("`", "``") + "`"


class Writer:
    """Counts the rows that it writes."""

    def __init__(self, path, header):
        self.path, self.rows = path, 0
        self.file = open(path, "w", encoding="utf-8", newline="")
        self.csv = csv.writer(self.file, lineterminator="\n")
        self.csv.writerow(header)

    def row(self, cells):
        self.csv.writerow(cells)
        self.rows += 1

    def finish(self):
        self.file.close()
        return {"file": self.path, "rows": self.rows}


class Reader:
    def __init__(self, connection, folder):
        self.connection, self.folder, self.files, self.keys = connection, folder, 0, {}

    def query(self, text):
        result = self.connection.execute(text)
        while result.has_next():
            yield result.get_next()

    def writer(self, header):
        self.files += 1
        return Writer(os.path.join(self.folder, "%d.csv" % self.files), header)

    def columns(self, table):
        for row in self.query("CALL table_info('%s') RETURN *" % table.replace("'", "\\'")):
            yield Column(table, row[1], row[2], row[4] is True)

    def nodes(self, table):
        columns = list(self.columns(table))
        key = next(column for column in columns if column.is_key)
        if key.cell not in {"string", "int"}:
            raise Refused("%s.%s: a %s cannot be a key" % (table, key.name, key.kind))
        self.keys[table] = key
        properties = ", ".join(column.read_from("n") for column in columns)
        writer = self.writer([column.header() for column in columns])
        for row in self.query("MATCH (n:%s) RETURN %s" % (name(table), properties)):
            writer.row(column.text(value) for column, value in zip(columns, row))
        rules = typed(columns, table, "(n:%s)" % name(table))
        rules.append(constraint(table, "(n:%s)" % name(table), "n.%s IS NODE KEY" % name(key.name)))
        say(kind="nodes", table=table, key=key.name, constraints=rules, **notes(columns), **writer.finish())

    def edges(self, table, start, end, rule):
        """Writes the relationships between two tables; `rule` says what the type connects."""
        columns = list(self.columns(table))
        ends = [Column(label, "<%s>" % which, self.keys[label].kind, True) for which, label in
                (("from", start), ("to", end))]
        keys = ["%s.%s" % (which, name(self.keys[label].name)) for which, label in (("a", start), ("b", end))]
        properties = ", ".join(keys + [column.read_from("r") for column in columns])
        every = ends + columns
        writer = self.writer([column.header() for column in every])
        pattern = "MATCH (a:%s)-[r:%s]->(b:%s)" % (name(start), name(table), name(end))
        for row in self.query("%s RETURN %s" % (pattern, properties)):
            writer.row(column.text(value) for column, value in zip(every, row))
        ends = {"from": [start, self.keys[start].name], "to": [end, self.keys[end].name]}
        rules = typed(columns, table, "()-[n:%s]-()" % name(table))
        rules.append(constraint(table, "()-[n:%s]->()" % name(table), rule))
        say(kind="edges", table=table, constraints=rules, **ends, **notes(columns), **writer.finish())


def constraint(rule_name, target, rule):
    return "CREATE CONSTRAINT %s IF NOT EXISTS FOR %s REQUIRE %s" % (name(rule_name), target, rule)


def typed(columns, table, target):
    """The constraints for the types of properties, named as `isolith.kuzu` names them."""
    rules = [(column.rule_name(), "n.%s IS :: %s" % (name(column.name), column.type)) for column in columns]
    return [constraint("%s.%s" % (table, column), target, rule) for column, rule in rules]


def notes(columns):
    return {"notes": [column.note for column in columns if column.note]}


def copy(database, folder):
    try:
        import kuzu
    except ImportError as error:
        hint = "install it with `%s -m pip install kuzu`, or name another Python with --python"
        raise Refused("the Python package kuzu cannot be imported: %s" % error, hint % sys.executable)
    reader = Reader(kuzu.Connection(kuzu.Database(database, read_only=True)), folder)
    tables = [(row[1], row[2]) for row in reader.query("CALL show_tables() RETURN *")]
    for table, kind in tables:
        if kind == "NODE":
            reader.nodes(table)
    for table, kind in tables:
        if kind in {"REL", "REL_GROUP"}:
            quoted = table.replace("'", "\\'")
            pairs = [row[:2] for row in reader.query("CALL show_connection('%s') RETURN *" % quoted)]
            ends = ["(:%s)-[n]->(:%s)" % (name(start), name(end)) for start, end in pairs]
            for start, end in pairs:
                reader.edges(table, start, end, " OR ".join(ends))


def main():
    try:
        copy(*sys.argv[1:])
    except Refused as refused:
        say(kind="refused", message=str(refused), hint=refused.hint)
    except Exception as error:  # noqa: BLE001 - whatever Kuzu raises is for the user
        hint = "use the version of the package kuzu that wrote the database, and close programs that have it open"
        say(kind="refused", message="Kuzu: %s" % error, hint=hint)
    else:
        say(kind="end")


main()
