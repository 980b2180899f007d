import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "./client-under-test.ts";
import { answers, FakeApiServer, sendStatus } from "./fake-api-server.ts";
import { fromConfigMap, groupOf, profileOf, SourceUnderTest } from "./source-under-test.ts";

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

/** What the Ignition config of the Profile `os` would be, by what the source shows. */
function ignitionOfOs(): string | undefined {
  return under.source.view.get("ConfigMap", "default", "texts")?.data.text;
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
    await until(() => server.openWatches === 4);
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
  await until(() => server.openWatches === 8);
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

it("while an old state is shown, none is proven that is newer, however long the API server was away", async () => {
  await under.list();
  await until(() => server.openWatches === 4 && under.source.isFollowed);
  const mend = server.always(/./, answers(503));
  server.cut();
  await until(() => !under.source.isFollowed);
  server.put(groupOf("m1", { profileRef: { name: "os" }, ...machine }, { generation: 2 }));
  await passTimeUntil(() => under.bed.clock.monotonicMs() > 60_000);
  mend();
  const proven: (number | undefined)[] = [];
  await passTimeUntil(() => {
    if (boots() === "local") proven.push(under.source.provenAtMs);
    return boots() === "/assets/wipe";
  });
  expect(new Set(proven)).toEqual(new Set([0]));
  await passTimeUntil(() => (under.source.provenAtMs ?? 0) > 60_000);
});

it("a change waits while the list of another kind is under way, though nothing has failed", async () => {
  await under.list();
  await until(() => server.openWatches === 4 && under.source.isFollowed);
  let list = () => {};
  server.once("list", (request, response) => (list = () => server.answer(request, response)), /\/profiles$/);
  // One watch ends in good order, long before its time.
  server.put(profileOf("spare", local));
  server.endWatches(/\/profiles$/);
  await until(() => server.seen("list", /\/profiles$/).length === 2);
  server.put(profileOf("os", local, 2));
  server.put(groupOf("m1", { profileRef: { name: "os" }, ...machine }, { generation: 2 }));
  for (let step = 0; step < 20; step++) await passTimeUntil(() => true);
  await under.bed.clock.advance(5_000);
  expect(boots()).toBe("local");
  expect(under.source.view.get("Group", "default", "m1")?.spec.profile).toBe("disk");
  list();
  await passTimeUntil(() => under.source.view.get("Group", "default", "m1")?.spec.profile === "os");
  expect(boots()).toBe("local");
});

describe("with a ConfigMap", () => {
  const texts = (text: string) => ({ kind: "ConfigMap", name: "texts", content: { data: { text } } });
  const wipeBy = { ...wipe, ignition: fromConfigMap("texts") };

  beforeEach(async () => {
    server.put(texts("old"));
    server.put(profileOf("os", wipeBy, 2));
    await under.list();
    await until(() => server.openWatches === 4 && under.source.isFollowed);
    expect(ignitionOfOs()).toBe("old");
  });

  /** What the machine would get; it must be a state that the objects once had. */
  const shows = () => `${boots()} ${boots() === "local" ? "" : ignitionOfOs()}`.trim();

  /** Notes everything that is shown until a fact holds. */
  async function watchUntil(seen: Set<string>, fact: () => boolean): Promise<void> {
    await passTimeUntil(() => {
      seen.add(shows());
      return fact();
    });
  }

  it("it waits with the others while they are not heard", async () => {
    server.delete("ConfigMap", "texts");
    server.put(groupOf("m1", { profileRef: { name: "os" }, ...machine }, { generation: 2 }));
    await passTimeUntil(() => shows() === "/assets/wipe undefined");
    const mend = server.always(/\/groups$/, answers(503));
    server.cut(/\/groups$/);
    const tries = () => server.seen("list", /\/groups$/).length;
    await passTimeUntil(() => tries() >= 3);
    // The machine is to boot from disk before the ConfigMap is there again.
    server.put(groupOf("m1", { profileRef: { name: "disk" }, ...machine }, { generation: 3 }));
    server.put(texts("new"));
    const seen = new Set<string>();
    const triedBefore = tries();
    await watchUntil(seen, () => tries() >= triedBefore + 3);
    mend();
    await watchUntil(seen, () => shows() === "local");
    expect([...seen]).toEqual(["/assets/wipe undefined", "local"]);
    expect(ignitionOfOs()).toBe("new");
  });

  it("its deletion counts at once", async () => {
    server.always(/\/groups$/, answers(503));
    server.cut(/\/groups$/);
    await passTimeUntil(() => server.seen("list", /\/groups$/).length >= 3);
    server.delete("ConfigMap", "texts");
    await passTimeUntil(() => ignitionOfOs() === undefined);
  });

  it.each([
    { what: "ConfigMaps are not heard", path: /\/configmaps$/ },
    { what: "it cannot be read", path: /\/configmaps\/texts$/ },
  ])("the others wait with it while $what", async ({ path }) => {
    const mend = server.always(path, answers(503));
    server.cut(path);
    const tries = () => server.requests.filter((request) => path.test(request.path)).length;
    server.put(texts("new"));
    const triedBefore = tries();
    await passTimeUntil(() => tries() >= triedBefore + 2);
    server.put(groupOf("m1", { profileRef: { name: "os" }, ...machine }, { generation: 2 }));
    const seen = new Set<string>();
    await watchUntil(seen, () => tries() >= triedBefore + 5);
    mend();
    await watchUntil(seen, () => boots() !== "local");
    expect([...seen]).toEqual(["local", "/assets/wipe new"]);
  });

  it("the others wait for it a minute, and no Install is served by what is then shown", async () => {
    server.always(/\/configmaps$/, answers(503));
    server.cut(/\/configmaps$/);
    await passTimeUntil(() => server.seen("list", /\/configmaps$/).length >= 3);
    server.put(groupOf("m1", { profileRef: { name: "os" }, ...machine }, { generation: 2 }));
    await passTimeUntil(() => boots() !== "local");
    const nowMs = under.bed.clock.monotonicMs();
    expect(nowMs).toBeGreaterThan(60_000);
    expect(nowMs - (under.source.provenAtMs ?? 0)).toBeGreaterThanOrEqual(60_000);
  });

  it("the others wait a second for one that changes all the time", async () => {
    // Each read begins when the one before has ended.
    server.always(/\/configmaps\/texts$/, (request, response) => {
      server.put(texts(`${server.version}`));
      server.answer(request, response);
    });
    server.put(texts("new"));
    await passTimeUntil(() => server.seen("get").length >= 5);
    const fromMs = under.bed.clock.monotonicMs();
    server.put(groupOf("m1", { profileRef: { name: "os" }, ...machine }, { generation: 2 }));
    await passTimeUntil(() => boots() !== "local");
    expect(under.bed.clock.monotonicMs() - fromMs).toBeLessThan(10_000);
  });

  it("the others do not wait for ConfigMaps that davit may not read", async () => {
    server.always(/\/configmaps$/, answers(403, "Forbidden"));
    server.cut(/\/configmaps$/);
    await passTimeUntil(() => server.seen("list", /\/configmaps$/).length >= 3);
    const fromMs = under.bed.clock.monotonicMs();
    server.put(groupOf("m1", { profileRef: { name: "os" }, ...machine }, { generation: 2 }));
    await passTimeUntil(() => boots() !== "local");
    expect(under.bed.clock.monotonicMs() - fromMs).toBeLessThan(10_000);
  });
});
