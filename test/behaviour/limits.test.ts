/** What one request may cost, and what is written down of it. */

import { connect } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { groupDocument, profileDocument } from "../boot/feed-documents.ts";
import { parseAnswer, readToEnd, statusOf } from "../http/wire.ts";
import { type BootServer, kernelBoot, startBootServer, template } from "./boot-server.ts";

const word = "xyzzySecret42";
const uuid = "a1b2c3d4-0000-4000-8000-00000000abcd";

let server: BootServer;
beforeAll(async () => {
  server = await startBootServer([
    profileDocument("lab/web", {
      boot: kernelBoot({ args: [`password=${word}`] }),
      templates: { generic: template(`{{request.query.password}} ${word}`) },
    }),
    groupDocument("lab/web", { selector: { mac: "52:54:00:a1:9c:ae" }, metadata: { secret: word } }),
  ]);
});
afterAll(() => server.close());

const last = () => JSON.parse(server.logLines.at(-1) ?? "{}");

it("a request is one line: method, path, status, group, profile, mac, uuid, duration, and no rendered text", async () => {
  const before = server.logLines.length;
  for (const path of ["/ipxe", "/generic", "/metadata"]) {
    await server.get(`${path}?mac=52-54-00-a1-9c-ae&uuid=${uuid}&password=${word}`);
  }
  await expect.poll(() => server.logLines.length).toBe(before + 3);
  expect(JSON.parse(server.logLines[before] ?? "")).toMatchObject({
    method: "GET",
    path: "/ipxe",
    status: 200,
    group: "lab/web",
    profile: "lab/web",
    mac: "52:54:00:a1:9c:ae",
    uuid,
    durationMs: expect.any(Number),
  });
  expect(server.logLines.join("")).not.toContain(word);
});

it("a label of more than 1 KiB is not in the log, one of 1 KiB is", async () => {
  for (const [value, logged] of [
    ["x".repeat(1024), "x".repeat(1024)],
    ["x".repeat(1025), undefined],
  ] as const) {
    const before = server.logLines.length;
    await server.get(`/ipxe?mac=52-54-00-a1-9c-ae&uuid=${value}`);
    await expect.poll(() => server.logLines.length).toBe(before + 1);
    expect(last().uuid).toBe(logged);
  }
});

it("a head that never ends is answered 408 and its connection is closed", async () => {
  const socket = connect(server.port, "127.0.0.1");
  socket.write("GET /ipxe HTTP/1.1\r\nHost: d\r\nX-Dribble: ");
  const answer = parseAnswer(await readToEnd(socket));
  expect(statusOf(answer)).toBe(408);
  expect(answer.headerLines[0]).toBe("Content-Type: text/plain; charset=utf-8");
});
