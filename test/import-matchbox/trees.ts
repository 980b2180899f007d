/** Matchbox data directories that live in memory, and what comes of them. */

import { admitBy } from "../../packages/import-matchbox/src/admit.ts";
import { importMatchbox } from "../../packages/import-matchbox/src/convert.ts";
import type { DataDirectory, InputFile } from "../../packages/import-matchbox/src/data-directory.ts";
import { findingText } from "../../packages/import-matchbox/src/findings.ts";
import { Admission } from "../../src/sources/admission/admission.ts";
import { packagedCrdsDirectory, readCrds } from "../../src/sources/admission/crds.ts";

/** Texts by path; an object is written as JSON. */
export type Tree = Readonly<Record<string, string | object>>;

export const admission = new Admission(await readCrds(packagedCrdsDirectory));

function directoryOf(tree: Tree): DataDirectory {
  const files = new Map(Object.entries(tree).map(([path, content]) => [path, textOf(content)]));
  return {
    list: (folder) => {
      const below = [...files.keys()].filter((path) => path.startsWith(`${folder}/`)).map((path) => path.split("/"));
      const entries = new Map(below.map(([, name = "", ...more]) => [name, { name, isDirectory: more.length > 0 }]));
      return [...entries.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    },
    read: (path): InputFile => {
      const text = files.get(path);
      return text === undefined ? { kind: "missing" } : { kind: "text", text };
    },
  };
}

export function textOf(content: string | object): string {
  return typeof content === "string" ? content : JSON.stringify(content, null, 2);
}

/** Imports a tree: its files by path, and its findings as lines. */
export function imported(tree: Tree, replaceUrl?: string) {
  const options = { admit: admitBy(admission), ...(replaceUrl !== undefined && { replaceUrl }) };
  const { files, findings } = importMatchbox(directoryOf(tree), options);
  return {
    files: Object.fromEntries(files.map(({ path, text }) => [path, text])),
    findings: findings.map(findingText),
  };
}
