import { describe, expect, it } from "vitest";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { secretPath } from "../../src/model/objects/documents.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { openIndex } from "./open-index.ts";

describe("template", () => {
  const index = openIndex([
    profileDocument("lab/web", {
      templates: {
        ignition: { kind: "secret", name: "s", key: "k", sha256: "abc", raw: true },
        cloudConfig: { kind: "broken" },
      },
    }),
    profileDocument("lab/plain", { templates: { generic: { kind: "text", text: "hello", raw: false } } }),
    groupDocument("lab/web", { selector: { serial: "1" } }),
    groupDocument("lab/plain", { selector: { serial: "2" }, profile: "plain" }),
    [secretPath("lab", "web", "abc"), "secret text"],
    syncedDocument(),
  ]);
  const labels = labelsFromQuery("serial=1");
  const web = index.select(labels);
  const plain = index.select(labelsFromQuery("serial=2"));

  it("gives inline text", () => {
    expect(index.template(plain, "generic", labels)).toMatchObject({ text: "hello", raw: false });
  });

  it("gives a secret's text", () => {
    expect(index.template(web, "ignition", labels)).toEqual({ text: "secret text", raw: true });
  });

  it("refuses a part that the Profile lacks, and one that is broken", () => {
    expect(() => index.template(web, "generic", labels)).toThrow(expect.objectContaining({ reason: "noPart" }));
    expect(() => index.template(web, "cloudConfig", labels)).toThrow(expect.objectContaining({ reason: "broken" }));
  });

  it("is broken when the secret's text is gone", () => {
    index.changed([{ path: secretPath("lab", "web", "abc"), text: undefined }]);
    expect(() => index.template(web, "ignition", labels)).toThrow(
      expect.objectContaining({ reason: "broken", group: "lab/web", profile: "lab/web" }),
    );
  });
});
