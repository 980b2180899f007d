import { expect, it } from "vitest";
import { prefersJson } from "../../src/http/ops/server.ts";

it.each([
  { accept: undefined, json: false },
  { accept: "", json: false },
  { accept: "*/*", json: false },
  { accept: "text/plain", json: false },
  { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", json: false },
  { accept: "application/json", json: true },
  { accept: "Application/JSON; charset=utf-8", json: true },
  { accept: "application/*", json: true },
  { accept: "application/json, */*", json: true },
  { accept: "application/json, text/plain, */*", json: false },
  { accept: "application/json, text/plain;q=0.5", json: true },
  { accept: "application/json;q=0.5, text/plain", json: false },
  { accept: "application/json;q=0.1, */*", json: false },
  { accept: "application/json;q=0", json: false },
  { accept: "application/json;q=x", json: false },
])("Accept: $accept asks for JSON: $json", ({ accept, json }) => {
  expect(prefersJson(accept)).toBe(json);
});
