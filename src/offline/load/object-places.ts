/**
 * Finds the places of objects and their fields. It parses a text again when a message needs a place in the text. All
 * places of 10,000 objects would take more memory than the objects themselves, and few objects get a message.
 */

import type { Position } from "../../lib/text/position.ts";
import { isJsonObject, type JsonValue } from "../../model/json.ts";
import { type ObjectName, objectKey } from "../../model/objects/source.ts";
import type { Definition, FileContent, ItemPlace } from "../../sources/directory/read-file.ts";
import { formatOf, readDocuments, type TextDocument, type TextStart } from "../../sources/directory/yaml-documents.ts";

/** A text that objects were read from. */
export interface WrittenText {
  /** The file's name in messages. */
  readonly file: string;
  readonly start: TextStart;
  /** Returns the text. @throws {Error} if it cannot be read any more. */
  readonly read: () => string;
}

/** A place in a file. */
export interface FilePlace extends Position {
  readonly file: string;
}

interface WrittenField {
  readonly text: WrittenText;
  readonly item: ItemPlace;
}

export class ObjectPlaces {
  readonly #objects = new Map<string, WrittenField>();
  #last: { readonly text: WrittenText; readonly documents: readonly TextDocument[] } | undefined;

  /** Adds a text's definitions. If an object is defined twice, the first definition wins. */
  add(text: WrittenText, { definitions }: FileContent): void {
    for (const definition of definitions) {
      const key = objectKey(nameOf(definition));
      if (!this.#objects.has(key)) this.#objects.set(key, { text, item: definition.place });
    }
  }

  /**
   * Returns the place of an object's field, or of the field's nearest parent in the text; undefined for an object that
   * is not in a text.
   * @param path names and list positions within the object; empty for the object itself.
   * @param inside a place in the field's text. The result is this place, if it can be found.
   */
  placeOf(name: ObjectName, path: readonly string[], inside?: Position): FilePlace | undefined {
    const written = this.#objects.get(objectKey(name));
    if (written === undefined) return undefined;
    const { file, at, document: number } = written.item;
    const document = path.length === 0 ? undefined : this.#read(written.text).find((each) => each.number === number);
    return { file, ...(document?.placeOf([...written.item.path, ...path], inside) ?? at) };
  }

  /** True if an object has a value at this path. */
  has(name: ObjectName, path: readonly string[]): boolean {
    const written = this.#objects.get(objectKey(name));
    const document = written && this.#read(written.text).find(({ number }) => number === written.item.document);
    let value: JsonValue | undefined = document?.value;
    for (const segment of [...(written?.item.path ?? []), ...path]) value = memberOf(value, segment);
    return value !== undefined;
  }

  #read(text: WrittenText): readonly TextDocument[] {
    if (this.#last?.text === text) return this.#last.documents;
    const documents = readAgain(text);
    this.#last = { text, documents };
    return documents;
  }
}

/** Parses a text again. Returns no documents if that fails, for example because the file was removed meanwhile. */
function readAgain({ file, start, read }: WrittenText): readonly TextDocument[] {
  try {
    const documents = readDocuments(read(), formatOf(file), start);
    return "text" in documents ? [] : documents;
  } catch {
    // The caller then uses the places of the objects themselves, which it knows without the text.
    return [];
  }
}

function memberOf(value: JsonValue | undefined, name: string): JsonValue | undefined {
  if (Array.isArray(value)) return value[Number(name)];
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function nameOf(definition: Definition): ObjectName {
  return definition.kind === "accepted" ? definition.object : definition.name;
}
