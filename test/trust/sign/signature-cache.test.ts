import { expect, it, vi } from "vitest";
import type { DetachedSignature } from "../../../src/trust/sign/detached.ts";
import { SignatureCache } from "../../../src/trust/sign/signer.ts";

/** Of 10 bytes in its two forms. */
function signature(name: string): DetachedSignature {
  return { binary: new Uint8Array(4), armored: name.padEnd(6) };
}

function cache(limits = { maxCount: 100, maxBytes: 1_000 }) {
  const signatures = new SignatureCache(limits);
  const add = (name: string) => signatures.add(name, async () => signature(name));
  return { signatures, add };
}

it("what was made is found again, the same object", async () => {
  const { signatures, add } = cache();
  expect(signatures.find("a")).toBeUndefined();
  const made = await add("a");
  expect(signatures.find("a")).toBe(made);
});

it("everybody who asks while it is made gets what is made once", async () => {
  const { signatures } = cache();
  const { promise, resolve } = Promise.withResolvers<DetachedSignature>();
  const make = vi.fn(() => promise);
  const asked = [signatures.add("a", make), signatures.add("a", make), signatures.add("a", make)];
  resolve(signature("a"));
  const [first, ...others] = await Promise.all(asked);
  expect(make).toHaveBeenCalledTimes(1);
  expect(others).toEqual([first, first]);
});

it("a failure reaches everybody who waits, and is tried again by the next", async () => {
  const { signatures, add } = cache();
  const make = () => Promise.reject(new Error("it failed"));
  const asked = [signatures.add("a", make), signatures.add("a", make)];
  for (const one of asked) await expect(one).rejects.toThrow("it failed");
  expect(await add("a")).toEqual(signature("a"));
  expect(signatures.count).toBe(1);
});

it.each([
  { name: "many", limits: { maxCount: 3, maxBytes: 1_000 } },
  { name: "large", limits: { maxCount: 100, maxBytes: 35 } },
])("the least recently used go when they are too $name", async ({ limits }) => {
  const { signatures, add } = cache(limits);
  for (const name of ["a", "b", "c"]) await add(name);
  signatures.find("a");
  await add("d");
  const kept = ["a", "b", "c", "d"].filter((name) => signatures.find(name) !== undefined);
  expect(kept).toEqual(["a", "c", "d"]);
  expect([signatures.count, signatures.sizeBytes]).toEqual([3, 30]);
});

it("what is larger than all may be is given and not kept", async () => {
  const { signatures, add } = cache({ maxCount: 3, maxBytes: 9 });
  expect(await add("a")).toEqual(signature("a"));
  expect([signatures.count, signatures.sizeBytes]).toEqual([0, 0]);
});
