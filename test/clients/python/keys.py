"""Reads and writes of every kind."""

from shown import connect, show, show_error, show_result

client = connect()

show_result(client.write("/k/a", "one"))
show_result(client.write("/k/a", "two"))
show_result(client.read("/k/a"))
show_result(client.set("/k/b", 3))
show_result(client.get("/k/b"))
show_result(client.write("/k/ttl", "x", ttl=100))
show_result(client.refresh("/k/ttl", ttl=200))
show_result(client.write("/k/dir", None, dir=True))
show_result(client.write("/k/queue", "first", append=True))
show_result(client.write("/k/queue", "second", append=True))
show_result(client.write("/k/a", "new", prevExist=True))
show_error(client.write, "/k/a", "new", prevExist=False)
show_error(client.write, "/k/none", "new", prevExist=True)
show_result(client.write("/k/a", "three", prevValue="new"))
show_error(client.write, "/k/a", "four", prevValue="new")
show_error(client.write, "/k/a", "four", prevIndex=1000000)
show_result(client.test_and_set("/k/a", "four", "three"))
show_error(client.test_and_set, "/k/a", "five", "three")

counter = client.read("/k/b")
counter.value = int(counter.value) + 1
show_result(client.update(counter))
show_error(client.update, counter)

show("/k/a" in client, "/k/none" in client)
listing = client.read("/k", recursive=True, sorted=True)
show(*(f"{leaf.key}={leaf.value!r}" for leaf in listing.leaves))
show("index", listing.etcd_index, "raft index is larger", listing.raft_index >= listing.etcd_index)
show(*(node.key for node in client.read("/k", sorted=True, quorum=True).get_subtree()))

show_error(client.read, "/k/none")
show_error(client.read, "/k/a/below")
show_error(client.write, "/k", "x")
show_error(client.write, "/", "x")
show_error(client.delete, "/k")
show_error(client.delete, "/k", dir=True)
show_error(client.write, "/k/a", "x", ttl="soon")
show_error(client.delete, "/k/a", prevValue="other")
show_result(client.delete("/k/a", prevValue="four"))
show_result(client.pop("/k/b"))
show_result(client.delete("/k/dir", dir=True))
show_result(client.delete("/k", recursive=True))
show_error(client.read, "/k")
for text in ("", "é \U0001f600", "<&>", "a=b&c;d+e %41", "line\nline", "x" * 100000):
    show(client.write("/odd", text).value == text == client.read("/odd").value)
