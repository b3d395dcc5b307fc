"""A client of one node: requests as JSON lines on stdin, answers as JSON lines on stdout.

    client.py ADDRESS PORT

{"op": "run", "statements": [...], "concurrent": true}   statements; those of a concurrent request in any order
{"op": "rows", "cql": "..."}                             all rows of a query
{"op": "view", "keyspace": ..., "table": ..., "times_of_collections": true}
                                                         all rows of a table, with WRITETIME and TTL of each column
"""

import datetime
import json
import sys
import time

from cassandra import OperationTimedOut
from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT, NoHostAvailable
from cassandra.concurrent import execute_concurrent
from cassandra.io.asyncioreactor import AsyncioConnection
from cassandra.policies import WhiteListRoundRobinPolicy
from cassandra.protocol import _ProtocolHandler
from cassandra.query import tuple_factory

TIMEOUT_S = 240
# A daemon that has just opened its port may still close a connection.
CONNECT_ATTEMPTS = 10

NATIVE_TYPES = set(
    "ascii bigint blob boolean counter date decimal double duration float inet int smallint text time timestamp "
    "timeuuid tinyint uuid varchar varint".split()
)
ONE_CELL = ("frozen<", "tuple<", "vector<", "'")


def connect(address, port):
    for attempt in range(1, CONNECT_ATTEMPTS + 1):
        cluster = configured(address, port)
        try:
            session = cluster.connect()
        except (NoHostAvailable, OperationTimedOut) as error:
            cluster.shutdown()
            if attempt == CONNECT_ATTEMPTS:
                raise
            print(f"attempt {attempt} to connect: {error}", file=sys.stderr)
            time.sleep(2)
        else:
            # The compiled handler cannot read a null in a list, such as the TTL of an element without one.
            session.client_protocol_handler = _ProtocolHandler
            return session


def configured(address, port):
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy([address]),
        request_timeout=TIMEOUT_S,
        row_factory=tuple_factory,
    )
    return Cluster(
        [address],
        port=port,
        connection_class=AsyncioConnection,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=TIMEOUT_S,
        control_connection_timeout=TIMEOUT_S,
        # The types in the results suffice; metadata of every table is not needed.
        schema_metadata_enabled=False,
        token_metadata_enabled=False,
        idle_heartbeat_interval=0,
    )


def plain(value):
    """A value as JSON, which is the same for equal values."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return "0x" + bytes(value).hex()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return {"pairs": [[plain(k), plain(v)] for k, v in value.items()]}
    if hasattr(value, "_asdict"):
        return {name: plain(field) for name, field in value._asdict().items()}
    if hasattr(value, "items") and not isinstance(value, type):
        return {"pairs": [[plain(k), plain(v)] for k, v in value.items()]}
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if hasattr(value, "__iter__"):
        return [plain(item) for item in value]
    return str(value)


def expiry(remaining, now_s):
    """Remaining seconds as a time of expiration, which does not depend on the time of the query."""
    if remaining is None:
        return None
    if isinstance(remaining, int):
        return {"expires": now_s + remaining}
    return [expiry(item, now_s) for item in remaining]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def rows(session, cql):
    """Rows of a query, from all pages."""
    result = session.execute(cql)
    names = list(result.column_names or [])
    now_s = int(time.time())
    found = []
    for row in result:
        found.append(
            [expiry(v, now_s) if n.startswith("ttl(") else plain(v) for n, v in zip(names, row)]
        )
    return {"columns": names, "rows": found}


def view(session, keyspace, table, times_of_collections):
    columns = session.execute(
        "SELECT column_name, kind, type FROM system_schema.columns WHERE keyspace_name = %s AND table_name = %s",
        (keyspace, table),
    )
    selected = []
    for name, kind, type_name in sorted(columns):
        selected.append(quoted(name))
        is_multi_cell = type_name not in NATIVE_TYPES and not type_name.startswith(ONE_CELL)
        has_times = kind in ("regular", "static") and type_name not in ("counter", "empty")
        if has_times and (times_of_collections or not is_multi_cell) and name != "":
            for function in ("writetime", "ttl"):
                call = f"{function}({quoted(name)})"
                selected.append(f'{call} AS {quoted(function + "(" + name + ")")}')
    return rows(session, f"SELECT {', '.join(selected)} FROM {quoted(keyspace)}.{quoted(table)}")


def run(session, statements, concurrent):
    if concurrent:
        execute_concurrent(session, [(s, ()) for s in statements], concurrency=32)
    else:
        for statement in statements:
            try:
                session.execute(statement)
            except Exception as error:
                raise RuntimeError(f"{statement[:300]}: {error}") from error
    return len(statements)


def answer(session, request):
    operation = request["op"]
    if operation == "run":
        return run(session, request["statements"], request["concurrent"])
    if operation == "rows":
        return rows(session, request["cql"])
    if operation == "view":
        return view(session, request["keyspace"], request["table"], request["times_of_collections"])
    raise ValueError(f"no such operation: {operation}")


def main():
    # Other output must not come between the answers.
    replies, sys.stdout = sys.stdout, sys.stderr
    session = connect(sys.argv[1], int(sys.argv[2]))
    print(json.dumps({"ok": "connected"}), file=replies, flush=True)
    for line in sys.stdin:
        try:
            reply = {"ok": answer(session, json.loads(line))}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
