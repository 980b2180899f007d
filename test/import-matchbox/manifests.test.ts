import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { manifestText } from "../../packages/import-matchbox/src/manifests.ts";
import { toObjectName } from "../../packages/import-matchbox/src/object-names.ts";
import { readFileBytes } from "../../src/sources/directory/read-file.ts";
import { admission } from "./trees.ts";

describe("a manifest", () => {
  it("reads back as what it was made of, without anything that YAML versions read differently", () => {
    const json = fc
      .jsonValue({ stringUnit: "binary", maxDepth: 3 })
      .filter((value) => !/\d{16}|e\+/.test(JSON.stringify(value)));
    const odd = fc.constantFrom(
      "yes",
      "0123",
      "1_000",
      "52:54:00:12:34:56",
      "a\r\nb",
      "a\n",
      "\n a",
      "",
      "# x",
      "{{x}}",
      "1e5",
      "\u2028",
      "~",
    );
    const metadata = fc.dictionary(
      fc.oneof(odd, fc.string()),
      fc.oneof(json, odd, fc.double({ min: -1e9, max: 1e9, noNaN: true })),
      { noNullPrototype: true },
    );
    const property = fc.property(metadata, (values) => {
      const spec = { profileRef: { name: "x" }, matchAll: true, metadata: values };
      const object = JSON.parse(
        JSON.stringify({ apiVersion: "davit.dev/v1alpha1", kind: "Group", metadata: { name: "g" }, spec }),
      );
      const text = manifestText({ comments: ["From a test"], objects: [object] });
      const { definitions, problems } = readFileBytes("g.yaml", Buffer.from(text), admission);
      expect(problems).toEqual([]);
      expect(definitions).toMatchObject([{ kind: "accepted", object: { spec: { metadata: object.spec.metadata } } }]);
    });
    fc.assert(property, { numRuns: 1_000 });
  });
});

describe("a name", () => {
  it("is one that Kubernetes allows, or none", () => {
    const property = fc.property(fc.string({ unit: fc.constantFrom("a", "B", "-", ".", "_", " ", "é") }), (text) => {
      expect(toObjectName(text) ?? "a").toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
    });
    fc.assert(property);
  });
});
