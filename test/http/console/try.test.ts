/** The Try screen: what a machine would get, beside another one, and with a manifest that is not applied. */

import { afterAll, describe, expect, it, vi } from "vitest";
import type * as tryThread from "../../../src/app/boot/try-thread.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { Holdings } from "../../../src/sources/directory/holdings.ts";
import { machine } from "../fake-machines.ts";
import { consoleListener, formTokenIn, origin, readToken } from "./console-listener.ts";

const file = "../../../src/app/boot/try-thread.ts";
const { TryThread } = await vi.importActual<typeof tryThread>(file);
const over = new AbortController();
afterAll(() => over.abort());

// A thread compiles for a second of a processor, so all of these consoles ask one. It keeps nothing from job to job.
let kept: tryThread.TryThread | undefined;
vi.mock("../../../src/app/boot/try-thread.ts", () => ({
  TryThread: class {
    try(...job: Parameters<tryThread.TryThread["try"]>) {
      kept ??= new TryThread({ clock: systemClock, signal: over.signal });
      return kept.try(...job);
    }
  },
}));

const listener = consoleListener();
const mac = "52:54:00:00:00:01";
const secretText = "hunter2-is-the-password";

const profile = (text: string, more = "") => `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: { name: web, namespace: racks }
spec:
  boot: { kernel: http://boot.example/kernel, args: [${text}] }
${more}`;
const group = (name: string, address: string, more = "") => `apiVersion: davit.dev/v1alpha1
kind: Group
metadata: { name: ${name}, namespace: racks }
spec:
  profileRef: { name: web }
  selector: { matchLabels: { mac: "${address}" } }
${more}`;
const secret = `apiVersion: v1
kind: Secret
metadata: { name: texts, namespace: racks, labels: { davit.dev/allow-template: "true" } }
stringData: { motd: "${secretText} {{mac}}" }
`;
const fromSecret = "  generic: { templateFrom: { secretKeyRef: { name: texts, key: motd } } }\n";
const manifests = { "all.yaml": [profile("quiet", fromSecret), group("web", mac), secret].join("---\n") };

type Started = Awaited<ReturnType<typeof listener.start>>;

async function post({ ask }: Started, form: Readonly<Record<string, string>>, headers = { origin }) {
  const token = formTokenIn((await ask("/console/try")).body);
  return await ask("/console/try", { method: "POST", headers, form: { form: token, ...form } });
}

describe("the form of labels", () => {
  it("shows what such a machine would get, by a URL that can be shared", async () => {
    const { ask } = await listener.start({ manifests });
    const { body, status } = await ask(`/console/try?labels=${encodeURIComponent(`mac=${mac}\r\nrole=web`)}`);
    expect(status).toBe(200);
    expect(body).toContain("<b>racks/web</b>");
    expect(body).toContain("kernel http://boot.example/kernel quiet");
    expect(body).toContain(`mac=${mac}\nrole=web</textarea>`);
    expect(body).toContain("From a Secret: not shown.");
    expect(body).not.toContain(secretText);
  });

  it("compares with a second machine, by its labels or by its name, and says what differs", async () => {
    listener.fake.machines.push(machine("racks/node7", { identities: ["mac/52:54:00:00:00:02"] }));
    const { ask } = await listener.start({ manifests });
    const first = `labels=mac%3D${mac}`;
    for (const second of ["other=mac%3D52:54:00:00:00:02", "machine=racks/node7"]) {
      const { body } = await ask(`/console/try?${first}&${second}`);
      expect(body).toMatch(/<th scope="row">Group<\/th>\n<td>racks\/web<\/td>\n<td>none<\/td>\n<td><b>differs<\/b>/);
      const ids = [...body.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id);
      expect(ids.toSorted()).toEqual([...new Set(ids)].toSorted());
    }
    const same = await ask(`/console/try?${first}&other=mac%3D${mac}`);
    expect(same.body).not.toContain("differs</b>");
    expect(same.body).toMatch(/<th scope="row">\/generic<\/th>\n<td>[^<]+<\/td>\n<td>[^<]+<\/td>\n<td>not compared</);
  });

  it("says which machine is not known, and which labels nobody can send", async () => {
    const { ask } = await listener.start();
    const unknown = await ask("/console/try?machine=%3Cimg%20src%3Dx%3E");
    expect(unknown.body).toContain("knows no machine with the name &lt;img src=x&gt;");
    const many = Array.from({ length: 300 }, (_, at) => `l${at}=x`).join("\n");
    const { body, status } = await ask(`/console/try?labels=${encodeURIComponent(many)}`);
    expect(status).toBe(200);
    expect(body).toContain("No machine can send these labels: More than");
  });

  it("keeps what is sent text", async () => {
    const { ask } = await listener.start();
    const hostile = `"></textarea><img src=x>=<script>\u202e`;
    const { body } = await ask(`/console/try?${new URLSearchParams({ labels: hostile, other: hostile })}`);
    expect(body).not.toMatch(/<img|<script>|\u202e/);
  });
});

describe("a manifest that is not applied", () => {
  it("is rendered over the present objects, and stored nowhere", async () => {
    const started = await listener.start({ manifests });
    const { revision } = started.index;
    const { body, status } = await post(started, {
      labels: `mac=${mac}`,
      manifest: [profile("debug"), group("new", "52:54:00:00:00:09")].join("---\n").replaceAll("\n", "\r\n"),
    });
    expect(status).toBe(200);
    expect(body).toContain("<code>Profile/racks/web</code> replaces the present one");
    expect(body).toContain("<code>Group/racks/new</code> is new");
    expect(body).toContain("davit finds nothing wrong with it.");
    expect(body).toContain("kernel http://boot.example/kernel quiet");
    expect(body).toContain("kernel http://boot.example/kernel debug");
    expect(body).toMatch(/<th scope="row">\/ipxe<\/th>\n<td>[^<]+<\/td>\n<td>[^<]+<\/td>\n<td><b>differs<\/b>/);
    expect(started.index.revision).toBe(revision);
    const after = await started.ask(`/console/try?labels=mac%3D${mac}`);
    expect(after.body).not.toContain("debug");
  });

  it.each([
    {
      name: "a mistake in a template",
      text: profile("'{{#if'"),
      finding: /<td>5:\d+<\/td>\n.*error.*\n.*spec\.boot\.args/,
    },
    {
      name: "an unknown field",
      text: profile("quiet", "  kernl: x\n"),
      finding: /<td>6:3<\/td>\n.*error.*\n.*does not exist/,
    },
    { name: "broken YAML", text: "kind: [", finding: /error<\/span><\/td>\n<td>The file cannot be read/ },
    { name: "no document", text: "# nothing", finding: /The manifest holds no document/ },
    { name: "a name twice", text: [profile("a"), profile("b")].join("---\n"), finding: /error<\/span>/ },
    { name: "an alias bomb", text: bomb(), finding: /error<\/span>/ },
    { name: "too many values", text: `a: [${"1,".repeat(160_000)}]`, finding: /more than 150000 lines and values/ },
    {
      name: "a Profile that does not exist",
      text: group("lost", mac).replace("web }", "nowhere }"),
      finding: /Profile &quot;nowhere&quot;/,
    },
  ])("gets the findings of davit lint: $name", async ({ text, finding }) => {
    const started = await listener.start({ manifests });
    const { body, status } = await post(started, { labels: `mac=${mac}`, manifest: text });
    expect(status).toBe(200);
    expect(body).toMatch(finding);
  });

  it("gets the findings alone without labels", async () => {
    const started = await listener.start({ manifests });
    const { body } = await post(started, { manifest: group("new", "52:54:00:00:00:09") });
    expect(body).toContain("davit finds nothing wrong with it.");
    expect(body).not.toContain("What differs");
  });

  it("shows an install as if its permit were open", async () => {
    const install = "  effect: Install\n  install: { then: sanboot }\n";
    const started = await listener.start({ manifests });
    const { body } = await post(started, { labels: `mac=${mac}`, manifest: profile("install", install) });
    expect(body).toContain("no ledger is asked: shown as if it were open");
    expect(body).toContain("kernel http://boot.example/kernel install");
  });

  it("shows the text of no Secret, neither a present one nor the manifest's own", async () => {
    const started = await listener.start({ manifests });
    const used = profile("x", fromSecret);
    for (const manifest of [
      used,
      [used, secret.replace("hunter2", "hunter3")].join("---\n"),
      secret,
      `kind: [\n${secret}`,
    ]) {
      const { body } = await post(started, { labels: `mac=${mac}`, manifest });
      expect(body).not.toContain("-is-the-password");
    }
    const { body } = await post(started, { labels: `mac=${mac}`, manifest: secret });
    expect(body).toContain("so it is not shown again");
  });

  it("comes back in its field, as text", async () => {
    const started = await listener.start({ manifests });
    const manifest = `# </textarea><img src=x>\n${group("new", mac, "  hold: true\n")}`;
    const { body } = await post(started, { manifest });
    expect(body).toContain("# &lt;/textarea&gt;&lt;img src=x&gt;");
    expect(body).not.toContain("<img");
  });

  it("is taken from the console's own form only, and from who may look", async () => {
    const started = await listener.start({ manifests, tokens: true, boundTo: "192.0.2.1" });
    const reader = { authorization: `Bearer ${readToken}` };
    const form = { manifest: profile("x") };
    const ask = async (given: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>>) =>
      (await started.ask("/console/try", { method: "POST", form: given, headers })).status;
    const token = formTokenIn((await started.ask("/console/try", { headers: reader })).body);
    expect(await ask({ ...form, form: token }, { ...reader, origin })).toBe(200);
    expect(await ask(form, { ...reader, origin })).toBe(403);
    expect(await ask({ ...form, form: token }, { ...reader, origin: "http://evil.example" })).toBe(403);
    expect(await ask({ ...form, form: token }, reader)).toBe(403);
    expect(await ask({ ...form, form: token }, { origin })).toBe(401);
  });

  it("has at most 1 MiB", async () => {
    const started = await listener.start({ manifests });
    const large = await post(started, { manifest: `# ${"x".repeat(1024 * 1024)}` });
    expect(large.body).toContain("more than 1 MiB");
    expect((await post(started, { manifest: "x".repeat(4 * 1024 * 1024) })).status).toBe(413);
    // The forms of other routes stay small.
    const other = { form: "", manifest: "x".repeat(100_000) };
    const { status } = await started.ask("/console/actions", { method: "POST", headers: { origin }, form: other });
    expect(status).toBe(413);
  });

  it("is tried only where the source is read", async () => {
    const [follower, led] = [await listener.start({ follows: true }), await listener.start({ isLed: true })];
    for (const { ask } of [follower, led]) {
      const page = await ask("/console/try");
      expect(page.body).toContain("Only the davit that reads the source can try a manifest");
      expect(page.body).not.toContain('name="manifest"');
    }
  });
});

/** Ten levels of nine aliases each. */
function bomb(): string {
  const levels = Array.from({ length: 10 }, (_, at) => {
    const values = at === 0 ? "x" : Array.from({ length: 9 }, () => `*l${at - 1}`).join(", ");
    return `l${at}: &l${at} [${values}]`;
  });
  return `${levels.join("\n")}\n`;
}

describe("the thread that tries manifests", () => {
  const rendering = { authority: "192.0.2.1:8080", grub: { separator: "auto", commands: "auto" } } as const;
  const ground = () => ({ view: new Holdings(), adminNamespace: undefined, rendering });
  const question = { manifest: profile("x"), rawQuery: undefined };

  it("tries one at a time", async () => {
    const stop = new AbortController();
    const thread = new TryThread({ clock: systemClock, signal: stop.signal });
    const [first, second] = [thread.try(ground(), question), thread.try(ground(), question)];
    expect(await second).toEqual({ kind: "busy" });
    expect((await first).kind).toBe("tried");
    expect((await thread.try(ground(), question)).kind).toBe("tried");
    stop.abort();
  });

  it("refuses more objects than it has room for, and tries the next manifest", async () => {
    const stop = new AbortController();
    const thread = new TryThread({ clock: systemClock, signal: stop.signal });
    const object = { kind: "ConfigMap", namespace: "racks", name: "large", data: { text: "x".repeat(1024 * 1024) } };
    const view = { all: (kind: string) => (kind === "ConfigMap" ? Array.from({ length: 17 }, () => object) : []) };
    const large = { ...ground(), view: view as unknown as Holdings };
    expect(await thread.try(large, question)).toEqual({ kind: "lost" });
    expect((await thread.try(ground(), question)).kind).toBe("tried");
    stop.abort();
  });

  it("gives up what takes too long, and tries the next one", async () => {
    const stop = new AbortController();
    const thread = new TryThread({ clock: { ...systemClock, sleep: () => Promise.resolve() }, signal: stop.signal });
    expect(await thread.try(ground(), question)).toEqual({ kind: "late" });
    expect(await thread.try(ground(), question)).toEqual({ kind: "late" });
    stop.abort();
  });
});
