"""Counts to the number in its second argument by test-and-set, with a client of every server in its first argument."""

import sys

import etcd


def test_and_set(number):
    """The index of the number, once it is there. A server that was killed may have written it without an answer."""
    try:
        return client.test_and_set("/counter", str(number), str(number - 1)).modifiedIndex
    except etcd.EtcdCompareFailed:
        found = client.read("/counter", quorum=True)
        if found.value != str(number):
            raise
        return found.modifiedIndex


servers = tuple(("127.0.0.1", int(port)) for port in sys.argv[1].split(","))
client = etcd.Client(host=servers, allow_reconnect=True)
client.write("/counter", "0")
for number in range(1, int(sys.argv[2]) + 1):
    print(number, test_and_set(number), flush=True)
