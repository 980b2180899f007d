/** What `/documents` shows people: nothing that is made from the text of a Secret. */

import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { withoutSecrets } from "../../src/http/ops/without-secrets.ts";
import { decodeProfile, encodeDocument, profilePath, secretPath } from "../../src/model/objects/documents.ts";

const path = profilePath("racks", "web");
const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");
const guesses = Array.from({ length: 10_000 }, (_, pin) => `user-password: "${String(pin).padStart(4, "0")}"\n`);
const sha256 = digestOf(guesses[4711] ?? "");

/** As the controller writes it: the revision is a digest of the content, and so of the Secret's digest. */
function document(template: object) {
  const content = {
    displayName: "web",
    boot: { kernel: "/k", initrd: [], args: [] },
    templates: { generic: template },
  };
  const revision = digestOf(JSON.stringify(content));
  const text = encodeDocument({ origin: "a.yaml", uid: "1", generation: 1, revision, content } as never);
  return { text, content, revision };
}

/** What a reader with these digests gets of a document; the store has the text of its template. */
function shownTo(text: string, digests = {}): string {
  const stored = secretPath("racks", "web", sha256);
  return withoutSecrets(path, text, { digests, digestAt: (asked) => (asked === stored ? sha256 : undefined) });
}

const template = { kind: "secret", name: "texts", key: "pin", sha256, raw: true };

it.each([
  ["an open template", template],
  ["a template of an install", { ...template, duringInstall: true }],
])("no text of ten thousand can be found by its digest: %s", (_, secret) => {
  const { text, content } = document(secret);
  const found = (shown: string) =>
    guesses.filter((guess) => {
      const digest = digestOf(guess);
      const guessed = { ...content, templates: { generic: { ...secret, sha256: digest } } };
      return shown.includes(digest) || shown.includes(digestOf(JSON.stringify(guessed)));
    });
  expect(found(text)).toEqual([guesses[4711]]);
  expect(found(shownTo(text))).toEqual([]);
  expect(found(shownTo(text, { "racks/web/generic": digestOf("0815") }))).toEqual([]);
});

it("the reader learns that it has the same text", () => {
  const shown = shownTo(document(template).text, { "racks/web/generic": sha256 });
  expect(decodeProfile(shown)?.content.templates.generic).toEqual(template);
  expect(decodeProfile(shown)?.revision).toBe("");
});

it("a digest for another part, another Profile or of another form is no guess", () => {
  const { text } = document(template);
  for (const digests of [
    { "racks/web/ignition": sha256 },
    { "racks/db/generic": sha256 },
    { "racks/web/generic": [sha256] },
    JSON.parse(`{"__proto__": {"racks/web/generic": "${sha256}"}}`),
  ]) {
    expect(shownTo(text, digests)).not.toContain(sha256);
  }
});

it("a Profile of a later davit shows nothing, and other documents are as they are", () => {
  expect(shownTo(`{"later": "${sha256}"}`)).toBe("");
  const { text } = document({ kind: "text", text: "public", raw: true });
  expect(shownTo(text)).toBe(text);
});

it("the reader learns the same of an encrypted text, and nothing of its name in the store", () => {
  const name = `encrypted-1-0123abcd-${"a".repeat(64)}`;
  const { text } = document({ ...template, sha256: name });
  const digestAt = (asked: string) => (asked.endsWith(name) ? sha256 : undefined);
  const same = withoutSecrets(path, text, { digests: { "racks/web/generic": sha256 }, digestAt });
  expect(decodeProfile(same)?.content.templates.generic).toEqual(template);
  const another = withoutSecrets(path, text, { digests: {}, digestAt });
  expect(decodeProfile(another)?.content.templates.generic).toMatchObject({ sha256: "0".repeat(64) });
  const withoutKey = shownTo(text, { "racks/web/generic": sha256 });
  expect(decodeProfile(withoutKey)?.content.templates.generic).toMatchObject({ sha256: "not shown" });
  for (const shown of [same, another, withoutKey]) expect(shown).not.toContain("encrypted-");
});
