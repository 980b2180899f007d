import { describe, expect, it } from "vitest";
import { AssetListError, readAssetList } from "../../src/assets/asset-list.ts";

const digest = "a".repeat(64);
const pathRule =
  "must be names with / between, each of 1 to 240 bytes, without a dot at its begin, a backslash or a control character";

function problemsOf(text: string): readonly string[] {
  try {
    readAssetList(text);
  } catch (error) {
    if (error instanceof AssetListError) return error.problems;
    throw error;
  }
  return [];
}

describe("a list of assets", () => {
  it("names a URL, a digest and a path each; the path may be left out", () => {
    const list = readAssetList(`
- url: https://mirror.test/os/vmlinuz-6.1%2Bdeb?token=x
  sha256: ${digest.toUpperCase()}
- {url: "http://mirror.test/initrd", sha256: ${digest}, path: debian/12/initrd.gz}
`);
    expect(list.map(({ url, ...rest }) => ({ url: url.href, ...rest }))).toEqual([
      { url: "https://mirror.test/os/vmlinuz-6.1%2Bdeb?token=x", sha256: digest, path: "vmlinuz-6.1+deb" },
      { url: "http://mirror.test/initrd", sha256: digest, path: "debian/12/initrd.gz" },
    ]);
  });

  it("may be JSON", () => {
    expect(readAssetList(JSON.stringify([{ url: "http://m.test/a", sha256: digest }]))).toHaveLength(1);
  });

  it("may be empty", () => {
    expect(readAssetList("[]")).toEqual([]);
  });

  it("tells everything that is wrong with it at once, by line", () => {
    const problems = problemsOf(`- {url: "ftp://m.test/a", sha256: ${digest}}
- {url: "http://user:pass@m.test/a", sha256: ${digest}}
- {url: "http://m.test/a", sha256: abc}
- {url: "http://m.test/a", sha256: ${digest}, sum: 1}
- {url: "http://m.test/a", sha256: ${digest}, path: ../a}
- {url: "http://m.test/a", sha256: ${digest}, path: .hidden/a}
- {url: "http://m.test/", sha256: ${digest}}
- {url: "http://m.test/b"}
- {sha256: ${digest}}
- word
- {url: "http://m.test/c?x", path: b, sha256: ${digest}}
- {url: "http://n.test/b", sha256: ${digest}}
- {url: "http://m.test/a", sha256: 1234}
`);
    expect(problems).toEqual([
      "line 1: url must be http:// or https://",
      "line 2: url must not hold a user name or password",
      "line 3: sha256 must be 64 hexadecimal digits",
      'line 4: unknown field "sum", there are url, sha256, path',
      `line 5: path "../a" ${pathRule}`,
      `line 6: path ".hidden/a" ${pathRule}`,
      `line 7: path "" ${pathRule}`,
      "line 8: it has no sha256: take it from the publisher of the file",
      "line 9: it has no url",
      "line 10: it must have url and sha256",
      'line 12: path "b" is there twice',
      "line 13: sha256 must be text: quote it",
    ]);
  });

  it.each([
    ["kernel: x", ["line 1: the list must be a sequence of {url, sha256, path}"]],
    ["", ["line 1: the list must be a sequence of {url, sha256, path}"]],
    ["- {url: [", ["line 1: it is not YAML (BAD_INDENT)"]],
  ])("%j is none", (text, problems) => {
    expect(problemsOf(text)).toEqual(problems);
  });

  it("never quotes a URL that it refuses", () => {
    expect(problemsOf(`- {url: "http://user:hunter2@m.test/", sha256: ${digest}}`).join()).not.toContain("hunter2");
  });
});
