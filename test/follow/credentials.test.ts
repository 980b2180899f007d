import { chmod, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readCredentials } from "../../src/follow/credentials.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-credentials-"));
});
afterEach(() => rm(folder, { recursive: true }));

const token = "a-token-of-the-file";

async function fileOf(mode: number): Promise<string> {
  const path = join(folder, "file");
  await writeFile(path, `${token}\n`);
  await chmod(path, mode);
  return path;
}

describe("what a follower shows its store", () => {
  it.each(["tokenFile", "keyFile"])("is refused where other users can read it: %s", async (option) => {
    const path = await fileOf(0o644);
    const sentence = `Cannot use "${path}": other users can read or write it: chmod o= "${path}"`;
    await expect(readCredentials({ [option]: path })).rejects.toThrow(sentence);
  });

  it("is read through the links of a Secret's volume, whose files its group may read", async () => {
    const link = join(folder, "link");
    await symlink(await fileOf(0o440), link);
    expect(await readCredentials({ tokenFile: link })).toMatchObject({ token });
  });
});
