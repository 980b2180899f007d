import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { publicProblem } from "../../src/lib/files/private-path.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-private-"));
});
afterEach(() => rm(folder, { recursive: true }));

it.each([0o600, 0o640, 0o660, 0o400])("mode %o is private: a volume's group may be davit's own", async (mode) => {
  const path = join(folder, "key");
  await writeFile(path, "");
  await chmod(path, mode);
  expect(await publicProblem(path)).toBeUndefined();
});

it.each([0o604, 0o602, 0o644, 0o666])("mode %o is not, and the problem says what to do", async (mode) => {
  const path = join(folder, "key");
  await writeFile(path, "");
  await chmod(path, mode);
  expect(await publicProblem(path)).toBe(`other users can read or write it: chmod o= "${path}"`);
});

it("a path to nothing is private, and what cannot be looked at is told", async () => {
  expect(await publicProblem(join(folder, "none"))).toBeUndefined();
  await writeFile(join(folder, "file"), "");
  await expect(publicProblem(join(folder, "file/below"))).rejects.toThrow("ENOTDIR");
});
