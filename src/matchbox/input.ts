/** The port to the files of a matchbox data directory; `open-directory.ts` has the one on a disk. */

export interface DataDirectory {
  /** What is in one folder, sorted; empty where there is no such folder. */
  list(folder: string): readonly InputEntry[];
  /** @param path such as `groups/default.json`. */
  read(path: string): InputFile;
}

export interface InputEntry {
  readonly name: string;
  readonly isDirectory: boolean;
}

export type InputFile =
  | { readonly kind: "text"; readonly text: string }
  /** `problem` is what it is and what to do. */
  | { readonly kind: "unusable"; readonly problem: string }
  | { readonly kind: "missing" };
