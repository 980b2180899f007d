/**
 * Reads the usual lines of a snapshot without `JSON.parse`: files without a ttl, whose text is ASCII without escapes.
 * A start parses nearly only such lines. `StateReader` reads every line that is not exactly of this form.
 *
 * Texts are copied from the bytes. A part of a JavaScript string would keep the whole string in memory.
 */

import { parsePath, rootPath } from "../core/node.ts";
import type { Tree } from "../tree/tree.ts";
import { addNewFile, type DirectoryNode } from "../tree/tree-node.ts";

const fileStart = '{"file":"/';
const pathStart = '{"file":"'.length;
const valueStart = '","value":"';
const createdStart = '","createdIndex":';
const modifiedStart = ',"modifiedIndex":';
// Numbers of at most 15 digits are exact.
const maxDigits = 15;
const zero = 0x30;
const nine = 0x39;

export class PlainLines {
  readonly #tree: Tree;
  readonly #bytes: Buffer;
  readonly #text: string;
  /** Where the next escape is. */
  #escape: number;
  /** The directory of the last file, and its path as lines have it: without a slash at the end. */
  #directory: DirectoryNode | undefined;
  #directoryPath = "";
  /** Where `#number` stopped. */
  #at = 0;

  private constructor(tree: Tree, bytes: Buffer, text: string) {
    this.#tree = tree;
    this.#bytes = bytes;
    this.#text = text;
    this.#escape = text.indexOf("\\");
  }

  /** The lines of a piece of a snapshot; undefined if its text is not ASCII. */
  static of(tree: Tree, piece: Uint8Array): PlainLines | undefined {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    const text = bytes.toString("latin1");
    // Only ASCII takes one byte for each character.
    return Buffer.byteLength(text) === text.length ? new PlainLines(tree, bytes, text) : undefined;
  }

  /**
   * Puts files into the tree, from the line at `start` on, up to the first line that is not plain.
   * @returns where that line begins.
   */
  take(start: number): number {
    // Another line came before, which may have replaced the directory.
    this.#directory = undefined;
    let at = start;
    for (let next = this.#takeLine(at); next >= 0; next = this.#takeLine(at)) at = next;
    return at;
  }

  /** @returns where the next line begins; -1 if this line is not plain. */
  #takeLine(start: number): number {
    const text = this.#text;
    if (!text.startsWith(fileStart, start)) return -1;
    const end = text.indexOf("\n", start);
    if (end < 0 || this.#hasEscape(start, end)) return -1;
    const pathEnd = text.indexOf('"', start + pathStart);
    if (!text.startsWith(valueStart, pathEnd)) return -1;
    const valueAt = pathEnd + valueStart.length;
    const valueEnd = text.indexOf('"', valueAt);
    if (!text.startsWith(createdStart, valueEnd)) return -1;
    const createdIndex = this.#number(valueEnd + createdStart.length);
    if (!text.startsWith(modifiedStart, this.#at)) return -1;
    const modifiedIndex = this.#number(this.#at + modifiedStart.length);
    if (createdIndex < 0 || modifiedIndex < 0 || this.#at + 1 !== end || text[this.#at] !== "}") return -1;
    const nameAt = text.lastIndexOf("/", pathEnd) + 1;
    const directory = this.#directoryOf(start + pathStart, nameAt - 1);
    if (directory === undefined || isBadName(text, nameAt, pathEnd)) return -1;
    const name = this.#copy(nameAt, pathEnd);
    const value = this.#copy(valueAt, valueEnd);
    const bytes = 1 + name.length + value.length;
    return addNewFile(directory, name, { value, createdIndex, modifiedIndex, bytes }) ? end + 1 : -1;
  }

  /** A text of its own. V8 copies a part of a string only if it has less than 13 characters. */
  #copy(start: number, end: number): string {
    return end - start < 13 ? this.#text.slice(start, end) : this.#bytes.toString("latin1", start, end);
  }

  #hasEscape(start: number, end: number): boolean {
    if (this.#escape >= 0 && this.#escape < start) this.#escape = this.#text.indexOf("\\", start);
    return this.#escape >= 0 && this.#escape < end;
  }

  /** @returns the number that begins here; -1 if there is none. */
  #number(start: number): number {
    const text = this.#text;
    let number = 0;
    let at = start;
    for (let digit = text.charCodeAt(at); digit >= zero && digit <= nine; digit = text.charCodeAt(at)) {
      number = 10 * number + (digit - zero);
      at += 1;
    }
    this.#at = at;
    return at === start || at - start > maxDigits ? -1 : number;
  }

  /** The directory whose path is between two places; undefined if it is not in the tree. */
  #directoryOf(start: number, end: number): DirectoryNode | undefined {
    const isSame =
      this.#directory !== undefined &&
      this.#directoryPath.length === end - start &&
      this.#text.startsWith(this.#directoryPath, start);
    if (isSame) return this.#directory;
    this.#directoryPath = this.#bytes.toString("latin1", start, end);
    const path = this.#directoryPath === "" ? rootPath : parsePath(this.#directoryPath);
    // A slash alone begins an empty name.
    const isPath = path !== undefined && this.#directoryPath !== rootPath;
    this.#directory = isPath ? this.#tree.directoryAt(path) : undefined;
    return this.#directory;
  }
}

/** True for names that no path has: an empty one, `.` and `..`. */
function isBadName(text: string, start: number, end: number): boolean {
  return end - start < 3 && /^\.{0,2}$/.test(text.slice(start, end));
}
