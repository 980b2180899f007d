/** The port to the files of a matchbox data directory. `open-directory.ts` implements it for directories on disk. */

export interface DataDirectory {
  /** Returns the entries of a folder, sorted; none if the folder does not exist. */
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
  /** `problem` says what is wrong, and after a colon what to do. */
  | { readonly kind: "unusable"; readonly problem: string }
  | { readonly kind: "missing" };
