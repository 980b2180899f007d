"""
An election, as programs hold one with this package, whose own was removed: candidates make keys in order, the lowest
leads, and each of the others watches the one before it.
"""

from shown import connect, in_background, show, wait_for_watchers

client = connect()


class Candidate:
    def __init__(self, name, ttl):
        self.name = name
        self.client = connect()
        self.key = self.client.write("/election", name, append=True, ttl=ttl).key

    def campaign(self):
        """Returns when this candidate leads."""
        while True:
            keys = sorted(self.client.read("/election", sorted=True).leaves, key=lambda leaf: leaf.key)
            place = [leaf.key for leaf in keys].index(self.key)
            if place == 0:
                return
            before = keys[place - 1]
            gone = self.client.watch(before.key, index=before.modifiedIndex + 1, timeout=0)
            show(self.name, "sees", gone.action, gone.key)

    def resign(self):
        self.client.delete(self.key)


def leader():
    return next(client.read("/election", sorted=True).leaves).value


ann, bob, eve = Candidate("ann", 60), Candidate("bob", 60), Candidate("eve", 60)
ann.campaign()
show("leader", leader())
waiting = in_background(bob.campaign)
wait_for_watchers(client, 1)
ann.resign()
waiting.join()
show("leader", leader())
waiting = in_background(eve.campaign)
wait_for_watchers(client, 1)
# Bob is not heard of again: his key ends.
bob.client.refresh(bob.key, ttl=1)
waiting.join()
show("leader", leader())
eve.resign()
show("candidates", client.read("/election").dir, len(client.read("/election")._children))
