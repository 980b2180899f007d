"""What the cluster says of itself."""

from shown import connect, show

client = connect(allow_reconnect=True)
only = client.leader

show("machines", *client.machines)
show("members", [sorted(member) for member in client.members.values()])
show("leader is the member", only["id"] in client.members, *only["clientURLs"])
show("self", sorted(client.stats), client.stats["state"], client.stats["id"] == only["id"])
show("leader", client.leader_stats["leader"] == only["id"], client.leader_stats["followers"])
show("store", sorted(client.store_stats))
show("version", client.version, client.cluster_version)

before = client.store_stats["setsSuccess"]
client.write("/counted", "x")
show("counted", client.store_stats["setsSuccess"] - before)
again = connect(expected_cluster_id=client.expected_cluster_id)
show("cluster id", client.expected_cluster_id is not None, again.read("/counted").value)
