/** What the console's pages show, and that nothing a machine sends becomes part of them. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { breakable, html, lines } from "../../../src/http/console/html/html.ts";
import { entry, machine } from "../fake-machines.ts";
import { adminToken, consoleListener, readToken } from "./console-listener.ts";

const listener = consoleListener();
const mac = "52:54:00:00:00:01";
const hostile = `"><img src=x onerror=alert(1)>'\u202e\u0000`;

describe("a template", () => {
  it("escapes texts, and inserts other templates as they are", () => {
    const inner = html`<b>${`<&>"'`}</b>`;
    expect(String(html`<p title="${hostile}">${inner}${[1, undefined, false, "x"]}</p>`)).toBe(
      `<p title="&quot;&gt;&lt;img src=x onerror=alert(1)&gt;&#39;\\u{202e}\\u{0}"><b>&lt;&amp;&gt;&quot;&#39;</b>1x</p>`,
    );
  });

  it("lets a path break after its slashes, and escapes it", () => {
    expect(String(html`<td>${breakable("assets/<b>/c")}${breakable(undefined)}</td>`)).toBe(
      "<td>assets/<wbr>&lt;b&gt;/<wbr>c</td>",
    );
  });

  it("keeps the lines and tabs of a text, and nothing else that moves the cursor", () => {
    expect(String(lines("a\tb\n<c>\r\u001b[2J\n"))).toBe("a\tb\n&lt;c&gt;\\u{d}\\u{1b}[2J\n");
  });
});

describe("what a machine sends", () => {
  const pages = ["/console/", "/console/waiting", `/console/machines/${mac}`, "/console/objects"];
  it.each(pages)("stays text on %s", async (url) => {
    const { ask, record } = await listener.start();
    const query = new URLSearchParams({ mac, hostname: hostile, serial: hostile });
    record(String(query), { status: 404, refusal: "noMatch", group: undefined });
    const { status, body } = await ask(url);
    expect(status).toBe(200);
    expect(body).not.toContain("<img");
    expect(body).not.toContain("\u202e");
    if (url !== "/console/waiting" && url !== "/console/objects") expect(body).toContain("&lt;img");
  });

  it.each(["x'; reboot #<img>", "x --force", "--force", "x\nreboot"])(
    "as its name %j stays text, and becomes no command",
    async (name) => {
      const { ask, record } = await listener.start();
      record(String(new URLSearchParams({ hostname: name })));
      const { body } = await ask("/console/");
      const [, href = ""] = /<a href="(\/console\/machines\/[^"]+)"/.exec(body) ?? [];
      const page = await ask(href.replaceAll("&#39;", "'"));
      expect(page.status).toBe(200);
      expect(page.body).not.toContain("<img");
      expect(page.body).not.toContain("davit machine show x");
      expect(page.body).toContain("no name that is safe in a shell");
    },
  );
});

describe("the page of a machine", () => {
  it("shows where its boots stopped, why it gets its Group, what it would get, and its installs", async () => {
    listener.fake.machines.push(machine("racks/node7", { identities: [`mac/${mac}`] }));
    listener.fake.entries.push(
      entry("1", { identities: [`mac/${mac}`], grant: { key: "group/racks/web", generation: 4 } }),
    );
    const { ask, record } = await listener.start();
    record(`mac=${mac}`, { status: 503, refusal: "unapproved", group: "racks/web" });
    const { body } = await ask("/console/machines/racks/node7");
    expect(body).toContain("stopped at ipxe: 503 unapproved");
    expect(body).toContain("racks/flatcar");
    expect(body).toContain("<code>/ignition</code> 200");
    expect(body).toContain("group/racks/web</code> generation 4");
    expect(body).toContain("davit machine show racks/node7");
  });

  it.each(["52:54:00:00:00:99", "racks/none", "%3Cimg%3E"])("%s, which nobody knows, is 404", async (name) => {
    const { ask } = await listener.start();
    const { status, body } = await ask(`/console/machines/${name}`);
    expect(status).toBe(404);
    expect(body).not.toContain("<img>");
  });
});

describe("the page of a machine, while another one says that it is it", () => {
  const uuid = "4c4c4544-0042-3510-8052-b4c04f4d5a32";
  const stranger = "192.0.2.66";
  const identities = [`uuid/${uuid}`, `mac/${mac}`];

  it.each<[what: string, labels: Readonly<Record<string, string>>, page: string]>([
    ["by the name of its Machine as a host name", { hostname: "racks/node7" }, "racks/node7"],
    ["by that name as a serial number", { serial: "racks/node7" }, "racks/node7"],
    ["by its MAC address as a host name", { hostname: mac }, mac],
    ["by its uuid and another MAC address", { uuid, mac: "52:54:00:00:00:66" }, "racks/node7"],
  ])("shows nothing of the other one: %s", async (_, labels, page) => {
    listener.fake.machines.push(machine("racks/node7", { identities }));
    const { ask, record } = await listener.start();
    record(String(new URLSearchParams({ ...labels, seen: "stranger" })), { address: stranger });
    const before = (await ask(`/console/machines/${page}`)).body;
    expect(before).toContain("racks/node7");
    expect(before).toContain("The history has no request of this machine.");
    expect(before).not.toContain(stranger);
    record(`uuid=${uuid}&mac=${mac}`);
    record(String(new URLSearchParams({ ...labels, seen: "stranger" })), { address: stranger });
    const { body } = await ask(`/console/machines/${page}`);
    expect(body).not.toContain(stranger);
    expect(body).not.toContain("The history has no request of this machine.");
    // The other one has a row and a page of its own. The page shows what it had a moment ago until it is made again.
    await expect.poll(async () => (await ask("/console/")).body).toContain(stranger);
    const fleet = (await ask("/console/")).body;
    const [, ...rows] = fleet.split("<tr>");
    const other = rows.find((row) => row.includes(stranger)) ?? "";
    const [, href = ""] = /<a href="(\/console\/machines\/[^"]+)"/.exec(other) ?? [];
    expect(rows.filter((row) => row.includes("racks/node7") && row.includes(stranger) && !row.includes("="))).toEqual(
      [],
    );
    const own = await ask(href);
    expect(own.status).toBe(200);
    expect(own.body).toContain(stranger);
    expect(own.body).not.toContain("/console/machines/racks/node7");
  });
});

describe("the waiting room", () => {
  it("has unknown, held and unapproved machines, and a Group to copy", async () => {
    listener.fake.machines.push(machine("racks/held", { identities: ["mac/52:54:00:00:00:02"], hold: true }));
    const { ask, record } = await listener.start();
    record(`mac=${mac}`, { status: 404, refusal: "noMatch" });
    record("mac=52:54:00:00:00:03", { group: "racks/web" });
    const { body } = await ask("/console/waiting");
    expect(body).toContain("2 machines wait for a person.");
    expect(body).toContain('id="m-racks/held"');
    expect(body).toContain(`mac: &quot;${mac}&quot;`);
    expect(body).not.toContain("52:54:00:00:00:03");
  });
});

describe("a live page", () => {
  it("comes again when something changes, and only then", async () => {
    const { server, record } = await listener.start();
    record(`mac=${mac}&hostname=web1`);
    const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--ops-address" });
    const events = await fetch(`http://127.0.0.1:${port}/console/`, { headers: { accept: "text/event-stream" } });
    expect(events.headers.get("content-type")).toBe("text/event-stream");
    const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader();
    let got = "";
    const readUntil = async (wanted: string) => {
      while (!got.includes(wanted)) got += (await reader?.read())?.value ?? "";
    };
    await readUntil("web1");
    expect(got).toContain("retry: 2000");
    record("mac=52:54:00:00:00:02&hostname=web2");
    await readUntil("web2");
    // Every line of the content is a line of an event: nothing in it can begin another event.
    for (const line of got.split("\n")) expect(line).toMatch(/^(retry: \d+|data: .*|data:|: .*|)$/);
    await reader?.cancel();
  });
});

describe("the places of live pages", () => {
  it("are shared: a reader who opens many keeps no other one from a live page", async () => {
    const { server } = await listener.start({ tokens: true, adminTokens: true });
    const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--ops-address" });
    const open = async (token: string) =>
      await fetch(`http://127.0.0.1:${port}/console/`, {
        headers: { accept: "text/event-stream", authorization: `Bearer ${token}` },
      });
    const pages: Response[] = [];
    for (let at = 0; at < 100; at += 1) pages.push(await open(readToken));
    expect([...new Set(pages.map(({ status }) => status))].toSorted()).toEqual([200, 204]);
    const other = await open(adminToken);
    expect(other.status).toBe(200);
    await Promise.all([...pages, other].map(({ body }) => body?.cancel()));
  });

  it("are not for a HEAD, whose answer ends", async () => {
    const { ask } = await listener.start();
    const { status, headers } = await ask("/console/", { method: "HEAD", headers: { accept: "text/event-stream" } });
    expect([status, headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
  });
});

describe("a live page whose browser went away before it began", () => {
  it("leaves its place to others", async () => {
    const closed: Promise<unknown>[] = [];
    const watch = (message: unknown) => {
      const { response } = message as { readonly response: ServerResponse };
      closed.push(once(response, "close"));
    };
    subscribe("http.server.request.start", watch);
    try {
      const reviews: (() => void)[] = [];
      const { server } = await listener.start({
        callers: {
          review: () => new Promise((resolve) => reviews.push(() => resolve({ kind: "admitted", name: "ada" }))),
          mayPatchMachines: () => Promise.resolve(false),
          patchMachine: () => Promise.resolve(undefined),
        },
      });
      const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--ops-address" });
      const url = `http://127.0.0.1:${port}/console/`;
      const headers = (at: number) => ({ accept: "text/event-stream", authorization: `Bearer token-${at}` });
      // More than the places of live pages.
      for (let at = 0; at < 100; at += 1) {
        const gone = new AbortController();
        const asked = fetch(url, { headers: headers(at), signal: gone.signal }).catch(() => undefined);
        await expect.poll(() => reviews.length).toBe(1);
        gone.abort();
        await asked;
        await closed.pop();
        reviews.pop()?.();
      }
      const stays = fetch(url, { headers: headers(100) });
      await expect.poll(() => reviews.length).toBe(1);
      reviews.pop()?.();
      const { status, body } = await stays;
      expect(status).toBe(200);
      await body?.cancel();
    } finally {
      unsubscribe("http.server.request.start", watch);
    }
  });
});
