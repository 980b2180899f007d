import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { LargeBodies } from "../../src/http/large-bodies.ts";
import { Shares } from "../../src/lib/shares.ts";
import type { Rendered } from "../../src/render/core/rendered.ts";

const mebibyte = 1024 * 1024;
const large = (letter = "x"): Rendered => ({ body: letter.repeat(mebibyte), contentType: "text/plain" });
const response = () => new ServerResponse(new IncomingMessage(new Socket()));

describe("a large body", () => {
  it("is in memory once, however many are sent it, and until the last of them has ended", () => {
    const bodies = new LargeBodies();
    const rendered = large();
    const answers = Array.from({ length: 400 }, response);
    const taken = answers.map((each) => bodies.take(rendered, each, () => "192.0.2.1"));
    expect(new Set(taken).size).toBe(1);
    expect(bodies.bytes).toBe(mebibyte);
    for (const each of answers) each.emit("close");
    expect(bodies.bytes).toBe(0);
  });

  it("of one's own is refused when its client has as much as is left, and others get theirs", () => {
    const bodies = new LargeBodies(new Shares({ limit: 8 * mebibyte }));
    for (let at = 0; at < 4; at++) bodies.take(large(), response(), () => "192.0.2.1");
    expect(() => bodies.take(large(), response(), () => "192.0.2.1")).toThrow(
      expect.objectContaining({ reason: "unsent" }),
    );
    expect(bodies.take(large("y"), response(), () => "192.0.2.2")).toHaveLength(mebibyte);
  });

  it("is counted as bytes, which letters may be more of", () => {
    const bodies = new LargeBodies();
    expect(bodies.take(large("é"), response(), () => "192.0.2.1")).toHaveLength(2 * mebibyte);
    expect(bodies.bytes).toBe(2 * mebibyte);
  });
});

it("a small body is the text that it is", () => {
  const bodies = new LargeBodies();
  expect(bodies.take({ body: "small", contentType: "" }, response(), () => undefined)).toBe("small");
  expect(bodies.bytes).toBe(0);
});
