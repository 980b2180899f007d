"""The package's lock: taken, waited for, renewed, and lost by its time."""

import etcd

from shown import connect, in_background, show, wait_for_watchers

first_client, second_client, client = connect(), connect(), connect()
first = etcd.Lock(first_client, "job")
second = etcd.Lock(second_client, "job")

show("first takes it", first.acquire(blocking=False, lock_ttl=60), first.is_acquired)
show("second may not", second.acquire(blocking=False, lock_ttl=60), second.is_acquired)
show("keys", *(leaf.key for leaf in client.read("/_locks/job", sorted=True).leaves))
show("hidden", [node.key for node in client.read("/").get_subtree()])


def take():
    show("second has it", second.acquire(lock_ttl=60), second.is_acquired)


waiting = in_background(take)
wait_for_watchers(client, 1)
show("first renews it", first.acquire(lock_ttl=60))
first.release()
waiting.join()
show("first has lost it", first.is_acquired)

by_hand = etcd.Lock(client, "job")
by_hand.uuid = second.uuid
by_hand.release()
show("second lost it to another hand", second.is_acquired)

short = etcd.Lock(first_client, "short")
short.acquire(lock_ttl=2)
third = etcd.Lock(second_client, "short")
show("third waits for its end", third.acquire(lock_ttl=60), short.is_acquired)
third.release()

with etcd.Lock(client, "block") as held:
    show("inside", held.is_acquired)
show("outside", held.is_acquired)
