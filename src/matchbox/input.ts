/** The port to the files of a matchbox data directory; `open-directory.ts` has the one on a disk. */

export interface DataDirectory {
  /** What is in one folder, sorted; empty where there is no such folder. */
  list(folder: string): readonly Entry[];
  /** @param path such as `groups/default.json`. */
  read(path: string): ReadFile;
}

export interface Entry {
  readonly name: string;
  readonly isDirectory: boolean;
}

export type ReadFile =
  | { readonly kind: "text"; readonly text: string }
  /** `problem` is what it is and what to do. */
  | { readonly kind: "unusable"; readonly problem: string }
  | { readonly kind: "missing" };
