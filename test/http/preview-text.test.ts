import { expect, it } from "vitest";
import type { Preview, Rendering } from "../../src/http/ops/preview.ts";
import { previewText } from "../../src/http/ops/preview-text.ts";

const plain = { contentType: "text/plain; charset=utf-8", isCut: false, isSecret: false };
const empty: Preview = {
  labels: {},
  chosen: undefined,
  refused: { reason: "noMatch", meaning: "no Group matches" },
  losers: [],
  moreLosers: 0,
  nearest: [],
  moreOthers: 0,
  warnings: [],
  renderings: [],
};

function rendering(body: string, more: Partial<Rendering> = {}): Rendering {
  return { ...plain, path: "/generic", status: 200, bytes: body.length, body, ...more };
}

it("a preview reads from the request to the configs", () => {
  const preview: Preview = {
    labels: { mac: "52:54:00:a1:9c:ae", zone: "b" },
    chosen: { group: "lab/any", profile: "lab/install", selector: "matchAll", priority: 0 },
    effect: "Install",
    refused: undefined,
    losers: [{ group: "lab/z", profile: "lab/z", selector: "zone=b", priority: 5, lost: "lower priority: 0" }],
    moreLosers: 2,
    nearest: [
      { group: "lab/own", profile: "lab/web", selector: "zone=a", priority: 0, misses: ["wants zone=a", "wants x=1"] },
    ],
    moreOthers: 0,
    warnings: [{ code: "catchAll", text: "lab/any takes every machine" }],
    renderings: [
      rendering("#!ipxe\nboot\n", { path: "/ipxe" }),
      rendering("500 config broken\n", { path: "/ignition", status: 500, problem: "Render template: not defined" }),
      { ...plain, path: "/cloud", status: 200, bytes: 39, isSecret: true },
      rendering(""),
      rendering("a", { isCut: true, bytes: 99_999 }),
    ],
  };
  expect(previewText(preview)).toBe(`request  mac=52:54:00:a1:9c:ae
         zone=b
group    lab/any  matchAll
profile  lab/install
effect   Install

Groups that match, and do not win (1 of 3):
  lab/z  zone=b  priority 5
      lower priority: 0

Groups that do not match, the nearest first:
  lab/own  zone=a
      wants zone=a
      wants x=1

warnings:
  - lab/any takes every machine

/ipxe  200  text/plain; charset=utf-8  12 bytes
    #!ipxe
    boot

/ignition  500  text/plain; charset=utf-8  18 bytes
    problem: Render template: not defined
    500 config broken

/cloud  200  text/plain; charset=utf-8  39 bytes, from a Secret: not shown

/generic  200  text/plain; charset=utf-8  0 bytes

/generic  200  text/plain; charset=utf-8  99999 bytes
    a
    ... and more
`);
});

it("a preview without anything says so", () => {
  expect(previewText(empty)).toBe("request  (no labels)\ngroup    (none)\nrefused  no Group matches (noMatch)\n");
});

it("what others wrote begins no line and moves no cursor", () => {
  const labels = { "a\nrefused": "\u001b[2J" };
  const text = previewText({ ...empty, labels, renderings: [rendering("a\u001b[2J\tb\r\u202e\nc\n")] });
  expect(text).toContain(`${String.raw`request  a\u{a}refused=\u{1b}[2J`}\n`);
  expect(text).toContain(`    a${String.raw`\u{1b}`}[2J\tb${String.raw`\u{d}\u{202e}`}\n    c\n`);
});
