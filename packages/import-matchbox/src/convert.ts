/**
 * Makes Profiles and Groups from a matchbox (https://matchbox.psdn.io) data directory.
 *
 * Machines that boot from the result get the same as from matchbox, or nothing. The import reports everything that it
 * cannot import, with its place. The same directory always gives the same result. The import writes nothing, and reads
 * only through the port `DataDirectory`.
 */

import { assert } from "../../../src/lib/errors.ts";
import { compareBytes } from "../../../src/lib/order.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import { type Group, selectorText } from "../../../src/model/objects/group.ts";
import { partEndpoints } from "../../../src/model/objects/profile.ts";
import type { Admit } from "./admit.ts";
import { type DataDirectory, dataPath } from "./data-directory.ts";
import { findingText, type ImportFinding, ImportFindings, shown } from "./findings.ts";
import { groupObject, type ReadGroup, readGroup } from "./group.ts";
import { type JsonFile, UnusableFile } from "./json-fields.ts";
import { manifestText } from "./manifests.ts";
import { giveNames } from "./object-names.ts";
import { type ImportedProfile, importProfile, type ProfileContext } from "./profile.ts";
import { compareValues } from "./values.ts";

export interface ImportOptions {
  readonly admit: Admit;
  /** The matchbox's own URL, without a slash at the end; davit's URL replaces it. */
  readonly replaceUrl?: string;
}

export interface Imported {
  /** Empty if two files would get the same object name, or a file would get none. */
  readonly files: readonly ImportedFile[];
  readonly profiles: number;
  readonly groups: number;
  readonly findings: readonly ImportFinding[];
}

export interface ImportedFile {
  /** For example `groups/default.yaml`. */
  readonly path: string;
  readonly text: string;
}

/** Makes manifests from a matchbox directory. */
export function importMatchbox(directory: DataDirectory, { admit, replaceUrl }: ImportOptions): Imported {
  const findings = new ImportFindings();
  const context = { directory, findings, admit, ...(replaceUrl !== undefined && { replaceUrl }) };
  return new Import(context).run();
}

class Import {
  readonly #context: ProfileContext;
  readonly #findings: ImportFindings;
  /** The files that objects were made from. */
  readonly #used = new Set<string>();

  constructor(context: ProfileContext) {
    this.#context = context;
    this.#findings = context.findings;
  }

  run(): Imported {
    const groups = this.#jsonFiles("groups").flatMap((file) => readGroup(file, this.#findings) ?? []);
    const profiles = new Map(this.#jsonFiles("profiles").map((file) => [keyOf(file), file]));
    for (const group of groups) this.#findProfile(group, profiles);
    const keys = new Set([...profiles.keys(), ...groups.map(({ profile }) => profileKey(profile))]);
    const profileNames = giveNames(keys, "profiles", this.#findings);
    const groupNames = giveNames(new Set(groups.map(({ file }) => keyOf(file))), "groups", this.#findings);
    if (profileNames === undefined || groupNames === undefined) return this.#result([], 0, 0);
    const profileFiles = [...profiles].flatMap(([key, file]) =>
      this.#profileFile(
        file,
        nameOf(profileNames, key),
        groups.filter(({ profile }) => profileKey(profile) === key),
      ),
    );
    this.#reportTies(groups);
    this.#reportUnused();
    const groupFiles = groups.map((group) => {
      const profile = nameOf(profileNames, profileKey(group.profile));
      const name = nameOf(groupNames, keyOf(group.file));
      return this.#file(
        `groups/${name}.yaml`,
        [group.file.path],
        [groupObject(group, { name, profile }, this.#context)],
      );
    });
    return this.#result([...profileFiles, ...groupFiles], profileFiles.length, groupFiles.length);
  }

  #result(files: readonly ImportedFile[], profiles: number, groups: number): Imported {
    return { files, profiles, groups, findings: this.#findings.sorted() };
  }

  /** Returns the files that matchbox reads in a folder. It reports all other entries. */
  #jsonFiles(folder: string): readonly JsonFile[] {
    return this.#context.directory.list(folder).flatMap(({ name, isDirectory }) => {
      const path = `${folder}/${name}`;
      if (isDirectory || !name.endsWith(".json")) {
        const what = isDirectory ? "is a directory" : "does not end in .json";
        this.#findings.warn(path, `${what}: matchbox does not read it, and it is not imported`);
        return [];
      }
      return this.#jsonFile(path) ?? [];
    });
  }

  #jsonFile(path: string): JsonFile | undefined {
    const read = this.#context.directory.read(path);
    if (read.kind === "text") return { path, text: read.text };
    this.#findings.error(
      path,
      read.kind === "missing"
        ? "is a link to nothing, or gone by now: put the file there, or remove the link"
        : read.problem,
    );
    return undefined;
  }

  /** Adds a group's profile if it is in a folder below `profiles`. Reports a profile that is missing or unusable. */
  #findProfile({ file, fields, profile }: ReadGroup, profiles: Map<string, JsonFile>): void {
    const key = profileKey(profile);
    if (profile === "") {
      this.#findings.error(
        file.path,
        "names no profile, its machines are answered 404: name one",
        fields.at("profile"),
      );
    } else if (!profiles.has(key)) {
      const path = dataPath("profiles", `${profile}.json`);
      const read = this.#context.directory.read(path);
      if (read.kind === "text") profiles.set(key, { path, text: read.text });
      else {
        const why = read.kind === "unusable" ? `: it ${read.problem}` : ": write it, or name another profile";
        const text = `no usable file ${shown(path)}, its machines are answered 404${why}`;
        this.#findings.error(file.path, text, fields.at("profile"));
      }
    }
  }

  #profileFile(file: JsonFile, name: string, groups: readonly ReadGroup[]): readonly ImportedFile[] {
    const profile = this.#profile(file, name);
    if (profile === undefined || profile.objects.length === 0) return [];
    for (const { file: template, use } of profile.uses) {
      for (const group of groups) compareValues(use, template, group, this.#findings);
    }
    return [this.#file(`profiles/${name}.yaml`, profile.sources, profile.objects)];
  }

  #profile(file: JsonFile, name: string): ImportedProfile | undefined {
    try {
      return importProfile(file, name, this.#context);
    } catch (error) {
      if (!(error instanceof UnusableFile)) throw error;
      // A finding has already reported why. Groups still name this Profile, so that their machines get 404, as from
      // matchbox.
      return undefined;
    }
  }

  #file(path: string, sources: readonly string[], objects: readonly JsonObject[]): ImportedFile {
    for (const source of sources) this.#used.add(source);
    const errors = sources.flatMap((source) => this.#findings.errorsOf(source));
    const comments = [
      `From ${sources.map(shown).join(", ")}`,
      ...errors.map((finding) => `Not imported: ${findingText(finding)}`),
    ];
    return { path, text: manifestText({ comments, objects }) };
  }

  #reportUnused(): void {
    for (const folder of partEndpoints) {
      for (const { name, isDirectory } of this.#context.directory.list(folder)) {
        const path = `${folder}/${name}`;
        if (isDirectory || this.#used.has(path)) continue;
        this.#findings.warn(path, "no profile that was imported uses it: it is not imported");
      }
    }
  }

  /** Warns of groups with the same selector. matchbox uses any of them; davit makes their machines wait. */
  #reportTies(groups: readonly ReadGroup[]): void {
    const first = new Map<string, string>();
    for (const { file, fields, selector } of groups.toSorted((a, b) => compareBytes(a.file.path, b.file.path))) {
      const text = selectorText(selector satisfies Group["selector"]);
      const other = first.get(text);
      if (other === undefined) first.set(text, file.path);
      else {
        const same = `selects the same machines as ${shown(other)}`;
        this.#findings.warn(
          file.path,
          `${same}: matchbox takes any of the two, and davit answers 503 unless they boot the same`,
          fields.at("selector"),
        );
      }
    }
  }
}

/** Returns a file's path below its folder, without the ending. */
function keyOf({ path }: JsonFile): string {
  return path.slice(path.indexOf("/") + 1).replace(/\.json$/, "");
}

// The name of a Profile that does not exist. A group without a profile names it, so that it still selects its machines.
const noProfile = "no-profile";

function profileKey(profile: string): string {
  return profile === "" ? noProfile : dataPath("", profile);
}

function nameOf(names: ReadonlyMap<string, string>, key: string): string {
  const name = names.get(key);
  assert(name !== undefined, "Every key was given a name");
  return name;
}
