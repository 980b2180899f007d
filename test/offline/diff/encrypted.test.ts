/** Texts of Secrets that are encrypted in what davit has: diff has no key, and says that it does not compare them. */

import { expect, it } from "vitest";
import { applied, comparable } from "../../../src/offline/diff/apply.ts";
import { compare } from "../../../src/offline/diff/compare.ts";
import { hasDifferences, notesOf } from "../../../src/offline/diff/report.ts";
import { type DocumentTexts, loadManifests } from "../../../src/offline/load/load-manifests.ts";
import { silentLog } from "../../helpers/test-store.ts";

const objects = (key: string) => `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: web, namespace: racks}
spec:
  boot: {kernel: /k}
  generic: {templateFrom: {secretKeyRef: {name: texts, key: ${key}}}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: web, namespace: racks}
spec: {profileRef: {name: web}, selector: {matchLabels: {mac: "52:54:00:a1:9c:ae"}}}
---
apiVersion: v1
kind: Secret
metadata: {name: texts, namespace: racks, labels: {davit.dev/allow-template: "true"}}
stringData: {one: first, two: second}
`;

const load = async (text: string) => await loadManifests({ directories: [], input: Buffer.from(text), log: silentLog });

/** The documents as a store has them that encrypts texts: their names are no digests. */
function encrypted(documents: DocumentTexts): DocumentTexts {
  return documents.map(([path, text]) => [path, text.replace(/"sha256":"/, '"sha256":"encrypted-1-0123abcd-')]);
}

async function reportOf(key: string) {
  const before = comparable(encrypted((await load(objects("one"))).documents));
  const { view } = await load(objects(key));
  const after = applied({ before, manifests: view, isPartial: false, log: silentLog, adminNamespace: undefined });
  const comparison = await compare({ before, after: after.documents, recorded: [], nowMs: 0 });
  return { ...after, before: "", after: "", comparison, hasRecorded: true };
}

it("the same Secret counts as unchanged, and a note says so", async () => {
  const report = await reportOf("one");
  expect(hasDifferences(report)).toBe(false);
  expect(notesOf(report)).toEqual([
    "Profile racks/web, spec.generic: Secret racks/texts is encrypted in what davit has: its text is taken as unchanged",
  ]);
});

it("another key of the Secret is a change that is not compared", async () => {
  const report = await reportOf("two");
  expect(report.comparison.groups[0]?.changes[0]?.texts).toMatchObject([
    { endpoint: "generic", note: 'its text is from Secret "texts", key "two", which cannot be compared' },
  ]);
  expect(notesOf(report)[0]).toMatch(/is encrypted in what davit has: its text is not compared$/);
});
