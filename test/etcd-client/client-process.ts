/** Uses a client of etcd in every way, aborts all of it and closes the client: the process must end by itself. */

import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../helpers/test-store.ts";

const endpoints = [new URL(process.argv[2] ?? "")];
const client = EtcdClient.open({ endpoints, clock: systemClock, log: silentLog, random: () => 0 });
const stop = new AbortController();
const { signal } = stop;
const lease = await client.leaseGrant(60);
const watches = Array.from({ length: 10 }, () => client.watch({ key: "p" }, { signal }));
for (const watch of watches) await watch.next();
const pending = watches.map((watch) => watch.next());
const renewals = client.keepAlive(lease.id, { everyMs: 20_000, signal });
await renewals.next();
const waiting = renewals.next();
const reads = Array.from({ length: 10 }, () => client.range({ key: "p" }, { signal }));
stop.abort();
await Promise.allSettled([...pending, waiting, ...reads]);
// The last requests are cut in the middle.
const cut = Promise.allSettled(Array.from({ length: 10 }, () => client.range({ key: "p" })));
client.close();
await cut;
process.stdout.write("closed\n");
