import { expect, it } from "vitest";
import { authority, isLoopback } from "../src/lib/text/address.ts";

it.each([
  ["127.0.0.1", true],
  ["127.8.0.1", true],
  ["::1", true],
  ["localhost", true],
  ["0.0.0.0", false],
  ["127.example.com", false],
])("`isLoopback` of %s is %s", (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});

it("`authority` puts IPv6 in brackets", () => {
  expect(authority({ host: "::1", port: 80 })).toBe("[::1]:80");
  expect(authority({ host: "a.example", port: 80 })).toBe("a.example:80");
});
