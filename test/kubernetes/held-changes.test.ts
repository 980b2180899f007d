import { afterEach, beforeEach, expect, it } from "vitest";
import { until } from "./client-under-test.ts";
import { FakeApiServer, sendStatus } from "./fake-api-server.ts";
import { groupOf, profileOf, SourceUnderTest } from "./source-under-test.ts";

let server: FakeApiServer;
let under: SourceUnderTest;

const machine = { selector: { matchLabels: { mac: "52:54:00:a1:9c:ae" } } };
const wipe = { boot: { kernel: "/assets/wipe" } };
const local = { boot: { local: "exit" } };

beforeEach(async () => {
  server = await FakeApiServer.start();
  server.put(profileOf("os", wipe));
  server.put(profileOf("disk", local));
  server.put(groupOf("m1", { profileRef: { name: "disk" }, ...machine }));
  under = new SourceUnderTest(server);
});
afterEach(async () => {
  await under.stop();
  await server.stop();
});

/** The kernel that the machine's Group would boot by what the source shows; `local` for none. */
function boots(): string {
  const group = under.source.view.get("Group", "default", "m1");
  const boot = under.source.view.get("Profile", "default", group?.spec.profile ?? "")?.spec.boot;
  return boot?.kind === "kernel" ? boot.kernel : "local";
}

/** Lets time pass as well as what goes on between the servers. */
async function passTimeUntil(fact: () => boolean): Promise<void> {
  while (!fact()) {
    await under.bed.clock.advance(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

it.each([
  { half: "Profiles", path: /\/profiles$/ },
  { half: "Groups", path: /\/groups$/ },
])(
  "a change waits while $half are not heard, and no machine boots what no state of the objects says",
  async ({ path }) => {
    await under.list();
    await until(() => server.openWatches === 3);
    const mend = server.always(path, (_, response) => sendStatus(response, 503, "ServiceUnavailable"));
    const tries = () => server.requests.filter((request) => path.test(request.path)).length;
    const triedBefore = tries();
    const toldBefore = under.changed.length;
    const told = () => under.changed.slice(toldBefore).toSorted();
    server.cut(path);
    // The second try comes when the first has failed.
    await passTimeUntil(() => tries() >= triedBefore + 2);
    // At no time is there a Group that boots the kernel.
    server.put(profileOf("os", local, 2));
    server.put(groupOf("m1", { profileRef: { name: "os" }, ...machine }, { generation: 2 }));
    server.put(profileOf("disk", wipe, 2));
    await passTimeUntil(() => tries() >= triedBefore + 4);
    expect(boots()).toBe("local");
    expect(told()).toEqual([]);

    mend();
    await passTimeUntil(() => told().length >= 3);
    expect(told()).toEqual(["Group/default/m1", "Profile/default/disk", "Profile/default/os"]);
    expect(under.source.view.get("Group", "default", "m1")?.spec.profile).toBe("os");
    expect(boots()).toBe("local");
  },
);

it("another namespace waits, too: its Groups may be less specific than one that nobody heard of", async () => {
  await under.stop();
  under = new SourceUnderTest(server, { namespaces: ["default", "other"] });
  await under.list();
  await until(() => server.openWatches === 6);
  const path = /\/default\/groups$/;
  const mend = server.always(path, (_, response) => sendStatus(response, 503, "ServiceUnavailable"));
  const tries = () => server.requests.filter((request) => path.test(request.path)).length;
  const triedBefore = tries();
  server.cut(path);
  await passTimeUntil(() => tries() >= triedBefore + 2);
  const toldBefore = under.changed.length;
  server.put(groupOf("m2", { profileRef: { name: "disk" }, selector: { matchLabels: { mac: "52:54:00:00:00:02" } } }));
  server.put(groupOf("all", {}, { namespace: "other" }));
  await passTimeUntil(() => tries() >= triedBefore + 4);
  expect(under.changed.slice(toldBefore)).toEqual([]);
  expect(under.source.view.get("Group", "other", "all")).toBeUndefined();
  mend();
  await passTimeUntil(() => under.changed.length >= toldBefore + 2);
  expect(under.changed.slice(toldBefore).toSorted()).toEqual(["Group/default/m2", "Group/other/all"]);
});

it("a first list waits for nobody's watch", async () => {
  server.always(/\/profiles$/, (request, response) => {
    if (request.kind === "watch") sendStatus(response, 403, "Forbidden");
    else server.answer(request, response);
  });
  await under.list();
  expect(boots()).toBe("local");
  expect(under.source.view.get("Profile", "default", "os")).toBeDefined();
});
