/** The port to the files of a matchbox data directory; `open-directory.ts` implements it for a disk. */

export interface DataDirectory {
  /** The entries of one folder, sorted; empty where there is no such folder. */
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
  /** `problem` names the problem and what to do. */
  | { readonly kind: "unusable"; readonly problem: string }
  | { readonly kind: "missing" };
