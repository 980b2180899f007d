"""What the programs of this folder share: a client of the server on the port that they are given, and how they tell."""

import sys
import threading
import time

import etcd


def connect(**options):
    return etcd.Client(host="127.0.0.1", port=int(sys.argv[1]), **options)


def show(*words):
    print(*words, flush=True)


def show_result(result):
    """Prints what there is to know of a node."""
    facts = {
        "action": result.action,
        "key": result.key,
        "value": result.value,
        "dir": result.dir or None,
        "ttl": result.ttl,
        "new": result.newKey or None,
        "created": result.createdIndex,
        "modified": result.modifiedIndex,
    }
    show(*(f"{name}={value!r}" for name, value in facts.items() if value is not None))


def show_error(call, *arguments, **options):
    """Prints the class and the fields of the error that a call ends with."""
    try:
        call(*arguments, **options)
        show("no error")
    except etcd.EtcdException as error:
        payload = error.payload or {}
        fields = (payload.get(name) for name in ("errorCode", "message", "cause", "index"))
        show(type(error).__name__, *fields)


def in_background(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def wait_for_watchers(client, count):
    while client.store_stats["watchers"] < count:
        time.sleep(0.02)
