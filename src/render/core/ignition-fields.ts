/**
 * The fields of an Ignition config, as the specifications 3.0.0 to 3.6.0 list them (coreos.github.io/ignition/specs).
 * Each field has its type, and the version that introduced it. A required field also has the version that first
 * required it. Rules across fields and the forms of values are not here: `ignition-validate` checks them.
 */

/** The type of a value. `path` is a text that begins with a slash. */
export type Shape = "text" | "integer" | "boolean" | "path" | ElementList | IgnitionFields;

/** A list: each of its elements has the shape `of`. */
interface ElementList {
  readonly kind: "list";
  readonly of: Shape;
}

export interface IgnitionFields {
  readonly kind: "fields";
  readonly fields: ReadonlyMap<string, Field>;
}

export interface Field {
  readonly shape: Shape;
  /** The minor version of the specification that introduced the field. */
  readonly since: number;
  /**
   * The minor version that first required the field. With `asked`, the specification requires it, but Ignition does not
   * check that.
   */
  readonly needed?: number | "asked";
}

/** The newest stable minor version of the specification 3 that this table knows. */
export const newestMinor = 6;

/** The newest minor version of specification 2. Only old releases of Ignition read that specification. */
export const newestMinorOf2 = 4;

const neededLater = (shape: Shape, needed: number): Field => ({ shape, since: 0, needed });
export const needed = (shape: Shape): Field => neededLater(shape, 0);
const asked = (shape: Shape): Field => ({ shape, since: 0, needed: "asked" });
export const since = (minor: number, shape: Shape): Field => ({ shape, since: minor });
export const list = (of: Shape): ElementList => ({ kind: "list", of });

export function fields(table: Readonly<Record<string, Shape | Field>>): IgnitionFields {
  const entries = Object.entries(table).map(([name, entry]): [string, Field] => [
    name,
    isField(entry) ? entry : since(0, entry),
  ]);
  return { kind: "fields", fields: new Map(entries) };
}

function isField(entry: Shape | Field): entry is Field {
  return typeof entry === "object" && "shape" in entry;
}

export const texts = list("text");

function resource(source: Shape | Field, compressionSince: number): IgnitionFields {
  return fields({
    source,
    compression: since(compressionSince, "text"),
    httpHeaders: since(1, list(fields({ name: needed("text"), value: "text" }))),
    verification: fields({ hash: "text" }),
  });
}

const owner = fields({ id: "integer", name: "text" });
const node = { path: needed("path"), overwrite: "boolean", user: owner, group: owner } as const;
const content = resource("text", 0);
export const dropin = fields({ name: needed("text"), contents: "text" });

export const ignitionSection = fields({
  version: needed("text"),
  config: fields({ merge: list(resource(neededLater("text", 1), 1)), replace: resource("text", 1) }),
  timeouts: fields({ httpResponseHeaders: "integer", httpTotal: "integer" }),
  security: fields({ tls: fields({ certificateAuthorities: list(resource(needed("text"), 1)) }) }),
  proxy: since(1, fields({ httpProxy: "text", httpsProxy: "text", noProxy: texts })),
});

const partition = fields({
  label: "text",
  number: "integer",
  sizeMiB: "integer",
  startMiB: "integer",
  typeGuid: "text",
  guid: "text",
  wipePartitionEntry: "boolean",
  shouldExist: "boolean",
  resize: since(2, "boolean"),
});

export const filesystem = fields({
  device: needed("path"),
  format: "text",
  path: "text",
  wipeFilesystem: "boolean",
  label: "text",
  uuid: "text",
  options: texts,
  mountOptions: since(1, texts),
});

export const tang = list(fields({ url: needed("text"), thumbprint: needed("text"), advertisement: since(4, "text") }));
export const cex = fields({ enabled: "boolean" });

const clevis = fields({
  tang,
  tpm2: "boolean",
  threshold: "integer",
  custom: fields({ pin: "text", config: "text", needsNetwork: "boolean" }),
});

export const luks = fields({
  name: asked("text"),
  device: needed("path"),
  keyFile: content,
  label: "text",
  uuid: "text",
  options: texts,
  wipeVolume: "boolean",
  clevis,
  discard: since(4, "boolean"),
  openOptions: since(4, texts),
  cex: since(5, cex),
});

export const storage = fields({
  disks: list(fields({ device: needed("path"), wipeTable: "boolean", partitions: list(partition) })),
  raid: list(
    fields({
      name: asked("text"),
      level: needed("text"),
      devices: needed(list("path")),
      spares: "integer",
      options: texts,
    }),
  ),
  filesystems: list(filesystem),
  files: list(fields({ ...node, mode: "integer", contents: content, append: list(content) })),
  directories: list(fields({ ...node, mode: "integer" })),
  links: list(fields({ ...node, target: neededLater("text", 3), hard: "boolean" })),
  luks: since(2, list(luks)),
});

export const user = fields({
  name: asked("text"),
  passwordHash: "text",
  sshAuthorizedKeys: texts,
  uid: "integer",
  gecos: "text",
  homeDir: "text",
  noCreateHome: "boolean",
  primaryGroup: "text",
  groups: texts,
  noUserGroup: "boolean",
  noLogInit: "boolean",
  shell: "text",
  shouldExist: since(2, "boolean"),
  system: "boolean",
});

const group = fields({
  name: asked("text"),
  gid: "integer",
  passwordHash: "text",
  shouldExist: since(2, "boolean"),
  system: "boolean",
});

export const unit = fields({
  name: needed("text"),
  enabled: "boolean",
  mask: "boolean",
  contents: "text",
  dropins: list(dropin),
});

/** The config as a whole. */
export const ignitionConfig: IgnitionFields = fields({
  ignition: needed(ignitionSection),
  storage,
  systemd: fields({ units: list(unit) }),
  passwd: fields({ users: list(user), groups: list(group) }),
  kernelArguments: since(3, fields({ shouldExist: texts, shouldNotExist: texts })),
});
