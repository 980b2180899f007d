/** Machines of a matchbox site get from davit what they got, after an import. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { missing } from "../helpers/requirements.ts";
import { runImport } from "./import-command.ts";
import { type Matchbox, startMatchbox } from "./matchbox-process.ts";
import { site, siteQuestions, siteUrl, writeTree } from "./site.ts";

interface Answer {
  readonly status: number;
  readonly body: string;
}

let folder: string;
let davit: DavitProcess;

async function ask(origin: string, question: string): Promise<Answer> {
  const response = await fetch(`${origin}/${question}`);
  return { status: response.status, body: await response.text() };
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "davit-import-"));
  writeTree(join(folder, "matchbox"), site);
  await runImport("matchbox", join(folder, "matchbox"), "--out", join(folder, "manifests"), "--matchbox-url", siteUrl);
  davit = await startDavit({ manifests: join(folder, "manifests"), dataDir: join(folder, "data") });
  return async () => {
    await davit.stop();
    rmSync(folder, { recursive: true });
  };
}, 60_000);

it("every machine gets what was reviewed", async () => {
  const answers = [];
  for (const question of siteQuestions) {
    const { status, body } = await ask(davit.bootUrl, question);
    answers.push(`GET /${question}\n${status}\n${body}`);
  }
  await expect(answers.join("----\n")).toMatchFileSnapshot("../golden/matchbox/answers.txt");
});

describe.skipIf(missing("matchbox"))("beside a matchbox", () => {
  let matchbox: Matchbox;

  beforeAll(async () => {
    matchbox = await startMatchbox(process.env.MATCHBOX ?? "", join(folder, "matchbox"), folder);
  });
  afterAll(() => matchbox.stop());

  it.each(siteQuestions.filter((question) => !question.startsWith("metadata")))("/%s is the same", async (question) => {
    const [ours, theirs] = await Promise.all([
      ask(davit.bootUrl, question),
      ask(`http://127.0.0.1:${matchbox.port}`, question),
    ]);
    if (theirs.status !== 200) expect([404, 500]).toContain(ours.status);
    // Since 0.10 matchbox writes Ignition configs anew, with empty objects for what they lack.
    else if (question.startsWith("ignition")) expect(JSON.parse(theirs.body)).toMatchObject(JSON.parse(ours.body));
    else expect(ours).toEqual(theirs);
  });

  it.each(siteQuestions.filter((question) => question.startsWith("metadata")))(
    "/%s has every line",
    async (question) => {
      const [ours, theirs] = await Promise.all([
        ask(davit.bootUrl, question),
        ask(`http://127.0.0.1:${matchbox.port}`, question),
      ]);
      expect(ours.status).toBe(theirs.status);
      // Their order changes from one answer to the next, and lists and the MAC of a request have no line.
      expect(ours.body.split("\n")).toEqual(expect.arrayContaining(theirs.body.split("\n")));
    },
  );
});
