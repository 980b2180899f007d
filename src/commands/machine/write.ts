/** Changes an object in its file: `--write`. */

import { randomBytes } from "node:crypto";
import { chmod, chown, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { codeOf } from "../../lib/errors.ts";
import { readSentence } from "../../lib/files/disk-sentence.ts";
import { StartError } from "../../lib/start-error.ts";
import type { JsonObject } from "../../model/json.ts";
import { editObject, objectIn } from "../../sources/directory/edit-object.ts";
import { listFiles } from "../../sources/directory/list-files.ts";
import { formatOf } from "../../sources/directory/yaml-documents.ts";
import { nameOf, type ObjectPlace } from "./cluster.ts";

/** The file of an object. */
interface ObjectFile {
  readonly path: string;
  readonly text: string;
  readonly object: JsonObject;
}

/**
 * Finds the file of an object.
 * @param directory a directory of manifests, or a file.
 * @throws {StartError} if no file defines the object, or several do.
 */
export async function fileOf(directory: string, place: ObjectPlace): Promise<ObjectFile> {
  const { files, problems } = await listFiles([directory], undefined, true);
  const found: ObjectFile[] = [];
  for (const { path } of files) {
    const text = await read(path);
    // Parsing takes much longer than this search.
    const object = text.includes(place.name) ? objectIn(text, formatOf(path), place) : undefined;
    if (object !== undefined) found.push({ path, text, object });
  }
  const [file, other] = found;
  if (other !== undefined) {
    throw new StartError(`${nameOf(place)} is in "${file?.path}" and in "${other.path}": remove one of the two`);
  }
  if (file !== undefined) return file;
  const [problem] = problems;
  const why = problem === undefined ? "" : ` (${problem.text})`;
  throw new StartError(
    `No readable file of "${directory}" defines ${nameOf(place)}${why}: correct the name, the directory or the file`,
  );
}

/**
 * Changes the object in its file. Another process sees the old file or the new one, never a part.
 * @throws {StartError} if the file was changed meanwhile, or cannot be changed.
 */
export async function writeObject({ path, text }: ObjectFile, place: ObjectPlace, spec: JsonObject): Promise<void> {
  const outcome = editObject(text, formatOf(path), { name: place, spec });
  if (outcome.kind !== "edited") {
    const why = `${nameOf(place)} cannot be edited without other changes, such as because of an alias`;
    throw new StartError(`"${path}" is not changed: ${why}: use --print, and write the lines yourself`);
  }
  try {
    await replace(await realpath(path), text, outcome.text);
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`Writing "${path}": ${reasonOf(error)}`, { cause: error });
  }
}

async function read(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new StartError(`Reading "${path}": ${reasonOf(error)}`, { cause: error });
  }
}

/**
 * Writes a file beside the old one, with its owner and mode, and renames it. davit ignores names with a dot. The file
 * is always a new one: a link of that name could lead anywhere, and another command may be writing.
 */
async function replace(path: string, before: string, after: string): Promise<void> {
  const { mode, uid, gid } = await stat(path);
  const beside = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}.davit`);
  try {
    await writeFile(beside, after, { mode, flag: "wx" });
    await chmod(beside, mode);
    const made = await stat(beside);
    if (made.uid !== uid || made.gid !== gid) await chown(beside, uid, gid);
    if ((await read(path)) !== before) throw new StartError(`"${path}" has changed meanwhile: repeat the command`);
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}

function reasonOf(error: unknown): string {
  if (codeOf(error) === "EPERM") return "the new file would have another owner: run the command as the file's owner";
  return readSentence(error) ?? String(codeOf(error) ?? "it cannot be written");
}
