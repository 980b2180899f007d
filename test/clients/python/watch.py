"""Watches: one change, changes of the past, and all that are to come."""

import etcd

from shown import connect, in_background, show, show_error, show_result, wait_for_watchers

client = connect()
watcher = connect()

waiting = in_background(lambda: show_result(watcher.watch("/w/a")))
wait_for_watchers(client, 1)
client.write("/w/other", "x")
first = client.write("/w/a", "one")
waiting.join()

show_result(watcher.watch("/w/a", index=first.modifiedIndex))
show_result(watcher.read("/w", wait=True, recursive=True, waitIndex=first.modifiedIndex - 1))
show_error(watcher.watch, "/w/none", timeout=1)


def tell_all():
    for event in watcher.eternal_watch("/w", index=first.modifiedIndex + 1, recursive=True):
        show_result(event)
        if event.key == "/w/last":
            return


waiting = in_background(tell_all)
client.write("/w/a", "two")
client.write("/w/b/c", "three")
client.test_and_set("/w/a", "four", "two")
client.delete("/w/b", recursive=True)
short = client.write("/w/short", "ends", ttl=1)
client.watch("/w/short", index=short.modifiedIndex + 1)
client.write("/w/last", "five")
waiting.join()

for _ in range(1001):
    client.write("/fill", "x")
try:
    watcher.watch("/w/a", index=first.modifiedIndex)
except etcd.EtcdEventIndexCleared as error:
    show(type(error).__name__, error.payload["errorCode"], error.payload["message"])
