/** Butane documents that Butane accepts: those of `golden/butane`, and any number of others. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { stringify } from "yaml";

interface ButaneDocument {
  readonly name: string;
  readonly text: string;
}

const folder = join(import.meta.dirname, "../golden/butane/documents");

export const goldenDocuments: readonly ButaneDocument[] = readdirSync(folder)
  .toSorted()
  .map((name) => ({ name, text: readFileSync(join(folder, name), "utf8") }));

/** Documents of every variant and version, the same ones in each run. */
export function generatedDocuments(count: number): readonly ButaneDocument[] {
  return fc
    .sample(anyDocument, { seed: 40, numRuns: count })
    .map((text, at) => ({ name: `document ${at} of seed 40`, text }));
}

interface Version {
  readonly variant: "fcos" | "flatcar";
  readonly version: string;
  /** Of Ignition's specification 3. */
  readonly minor: number;
}

const versions: readonly Version[] = [
  { variant: "fcos", version: "1.0.0", minor: 0 },
  { variant: "fcos", version: "1.1.0", minor: 1 },
  { variant: "fcos", version: "1.2.0", minor: 2 },
  { variant: "fcos", version: "1.3.0", minor: 2 },
  { variant: "fcos", version: "1.4.0", minor: 3 },
  { variant: "fcos", version: "1.5.0", minor: 4 },
  { variant: "fcos", version: "1.6.0", minor: 5 },
  { variant: "flatcar", version: "1.0.0", minor: 3 },
  { variant: "flatcar", version: "1.1.0", minor: 4 },
];

type Fields = Readonly<Record<string, fc.Arbitrary<unknown>>>;

/** A mapping with the needed fields, and any of the others. */
function mapping(needed: Fields, others: Fields = {}): fc.Arbitrary<Record<string, unknown>> {
  return fc.record({ ...needed, ...others }, { requiredKeys: Object.keys(needed) });
}

function several(entry: fc.Arbitrary<Record<string, unknown>>, key: string): fc.Arbitrary<unknown> {
  return fc.uniqueArray(entry, { maxLength: 3, selector: (value) => value[key] });
}

/** The fields, if the version has them. */
function since(minor: number, { minor: own }: Version, fields: Fields): Fields {
  return own >= minor ? fields : {};
}

const boolean = fc.boolean();
const word = fc.stringMatching(/^[a-z][a-z0-9]{0,7}$/);
const text = fc.oneof(
  fc.string({ maxLength: 60 }),
  fc.string({ unit: fc.constantFrom("a", " ", "\n", "é", "🚀", "%", "#", '"', "'", "\\", ":"), maxLength: 60 }),
  fc.constantFrom("", "0644", "yes", "null", "1.10", "~", "2026-12-01"),
  fc.string({ unit: fc.constantFrom("server 10.0.0.1 iburst\n", "# a comment\n"), maxLength: 40 }),
);
const path = fc.array(fc.stringMatching(/^[a-z.][a-zA-Z0-9_@ -]{0,5}[a-z]$/), { minLength: 1, maxLength: 3 });
const belowVar = path.map((steps) => `/var/${steps.join("/")}`);
const mode = fc.integer({ min: 0, max: 0o777 });
const texts = fc.uniqueArray(word, { maxLength: 3 });
const guid = fc.uuid();

function resource(version: Version): fc.Arbitrary<unknown> {
  const inline = fc.record({ inline: text });
  const fetched = mapping(
    { source: fc.constantFrom("https://files.example/a", "http://files.example/b?c=%20", "s3://bucket/key") },
    { compression: fc.constantFrom("", "gzip") },
  );
  const headers = several(mapping({ name: word, value: word }), "name");
  const withHeaders = mapping({ source: fc.constant("https://files.example/h") }, { http_headers: headers });
  return version.minor >= 1 ? fc.oneof(inline, inline, fetched, withHeaders) : fc.oneof(inline, fetched);
}

function nodes(version: Version): Fields {
  const owner = fc.oneof(fc.record({ id: fc.nat(70_000) }), fc.record({ name: word }));
  const node = { user: owner, group: owner };
  const at = (folder: string) => path.map((steps) => `/${folder}/${steps.join("/")}`);
  const contents = resource(version);
  const file = fc.oneof(
    mapping({ path: at("f"), contents }, { ...node, mode, overwrite: boolean }),
    mapping({ path: at("f") }, { ...node, mode, append: fc.array(contents, { maxLength: 3 }) }),
  );
  return {
    files: several(file, "path"),
    directories: several(mapping({ path: at("d") }, { ...node, mode }), "path"),
    links: several(mapping({ path: at("l"), target: belowVar }, { ...node, hard: boolean }), "path"),
  };
}

function storage(version: Version): fc.Arbitrary<unknown> {
  const device = word.map((name) => `/dev/${name}`);
  const resize = since(2, version, { resize: boolean });
  const partition = mapping(
    { number: fc.integer({ min: 1, max: 9 }), label: word },
    { type_guid: guid, guid, wipe_partition_entry: boolean, should_exist: fc.constant(true), ...resize },
  );
  const partitions = fc.uniqueArray(partition, { maxLength: 3, comparator: isSamePartition });
  const filesystem = mapping(
    { device: fc.oneof(device, fc.constantFrom("/dev/mapper/a", "/dev/disk/by-id/dm-name-b")) },
    {
      label: word,
      uuid: guid,
      options: texts,
      wipe_filesystem: boolean,
      ...since(1, version, { mount_options: texts }),
    },
  );
  const mounted = fc.record({ format: fc.constantFrom("ext4", "xfs"), path: belowVar });
  const swap = fc.constant({ format: "swap" });
  const format = version.minor >= 3 ? fc.oneof(mounted, swap) : mounted;
  const unit = version.minor >= 1 ? mapping({}, { with_mount_unit: boolean }) : fc.constant({});
  const whole = fc.tuple(filesystem, format, unit).map((parts) => Object.assign({}, ...parts));
  const filesystems = fc.uniqueArray(whole, { maxLength: 3, comparator: isSameFilesystem });
  return mapping(
    {},
    {
      ...nodes(version),
      disks: several(mapping({ device, partitions }, { wipe_table: boolean }), "device"),
      raid: several(mapping({ name: word, level: fc.constantFrom("raid1", "raid5"), devices: devices(2) }), "name"),
      filesystems,
      ...since(2, version, { luks: several(luks(version), "name") }),
    },
  );
}

function isSamePartition(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  return a.number === b.number || a.label === b.label || (a.guid !== undefined && a.guid === b.guid);
}

function isSameFilesystem(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  return a.device === b.device || (a.path !== undefined && a.path === b.path);
}

function devices(minLength: number): fc.Arbitrary<unknown> {
  return fc.uniqueArray(fc.constantFrom("/dev/sda", "/dev/sdb", "/dev/sdc"), { minLength, maxLength: 3 });
}

function tangs(version: Version, minLength: number): fc.Arbitrary<unknown> {
  const tang = mapping(
    { url: word.map((host) => `https://${host}.example`), thumbprint: word },
    since(4, version, { advertisement: fc.constant('{"payload": "x"}') }),
  );
  return fc.uniqueArray(tang, { minLength, maxLength: 2, selector: ({ url }) => url });
}

function luks(version: Version): fc.Arbitrary<Record<string, unknown>> {
  const name = fc.constantFrom("a", "b", "c");
  const others = { label: word, uuid: guid, options: texts, wipe_volume: boolean };
  const later = since(4, version, { discard: boolean, open_options: texts });
  const needed = { name, device: fc.constant("/dev/sdx") };
  const keyed = mapping({ ...needed, key_file: fc.record({ inline: word }) }, { ...others, ...later });
  if (version.variant === "flatcar") return keyed;
  const clevis = fc.oneof(fc.record({ tpm2: fc.constant(true) }), fc.record({ tang: tangs(version, 1) }));
  return fc.oneof(keyed, mapping({ ...needed, clevis }, { ...others, ...later }));
}

function passwd(version: Version): fc.Arbitrary<unknown> {
  const exists = since(2, version, { should_exist: boolean });
  const user = {
    ...{ uid: fc.nat(60_000), gecos: text, home_dir: belowVar, primary_group: word, shell: belowVar, groups: texts },
    ...{ no_create_home: boolean, no_user_group: boolean, no_log_init: boolean, system: boolean },
    ...{ ssh_authorized_keys: fc.uniqueArray(text, { maxLength: 2 }), password_hash: word, ...exists },
  };
  const group = { gid: fc.nat(60_000), password_hash: word, system: boolean, ...exists };
  return mapping(
    {},
    { users: several(mapping({ name: word }, user), "name"), groups: several(mapping({ name: word }, group), "name") },
  );
}

const contents = fc.constantFrom(
  "[Unit]\nDescription=a\n",
  "[Service]\nExecStart=/bin/true\n\n[Install]\nWantedBy=multi-user.target\n",
);
const dropin = mapping({ name: word.map((name) => `${name}.conf`) }, { contents });
const unit = mapping(
  {
    name: fc.oneof(
      word.map((name) => `${name}.service`),
      fc.constantFrom("var-a.mount", "var-b.mount"),
    ),
  },
  { enabled: boolean, mask: boolean, contents, dropins: several(dropin, "name") },
);

function ignition(version: Version): fc.Arbitrary<unknown> {
  const source = word.map((name) => `https://files.example/${name}`);
  const named = several(mapping({ source }), "source");
  const nested = fc.constant({ inline: `{"ignition": {"version": "3.${version.minor}.0"}}` });
  const replace = version.minor >= 1 ? fc.oneof(mapping({ source }), nested) : mapping({ source });
  const url = word.map((host) => `http://${host}.example`);
  return mapping(
    {},
    {
      config: mapping({}, { merge: named, replace }),
      timeouts: mapping({}, { http_response_headers: fc.nat(60), http_total: fc.nat(60) }),
      security: fc.record({ tls: fc.record({ certificate_authorities: named }) }),
      ...since(1, version, { proxy: mapping({}, { http_proxy: url, https_proxy: url, no_proxy: texts }) }),
    },
  );
}

function extensions({ variant, version, minor }: Version): Fields {
  if (variant === "flatcar" || version < "1.3.0") return {};
  const own: Version = { variant, version, minor };
  const layout = fc.constantFrom("x86_64", "aarch64", "ppc64le");
  const luksOfRoot = mapping(
    {},
    { tpm2: boolean, threshold: fc.constant(1), tang: tangs(own, 0), ...since(4, own, { discard: boolean }) },
  );
  const device = mapping({}, { layout, luks: luksOfRoot, mirror: fc.record({ devices: devices(2) }) });
  const grubUser = mapping({ name: word, password_hash: word.map((hash) => `grub.pbkdf2.sha512.1.${hash}`) });
  return { boot_device: device, ...since(4, own, { grub: fc.record({ users: several(grubUser, "name") }) }) };
}

const anyDocument: fc.Arbitrary<string> = fc
  .constantFrom(...versions)
  .chain((version) =>
    fc.tuple(
      mapping(
        { variant: fc.constant(version.variant), version: fc.constant(version.version) },
        {
          ignition: ignition(version),
          storage: storage(version),
          passwd: passwd(version),
          systemd: mapping({}, { units: several(unit, "name") }),
          ...since(3, version, { kernel_arguments: mapping({}, { should_exist: texts }) }),
          ...extensions(version),
        },
      ),
      boolean,
    ),
  )
  .map(([document, isOldStyle]) => (isOldStyle ? oldStyle(stringify(document)) : stringify(document)));

/** Writes modes and booleans as YAML 1.1 has them. */
function oldStyle(yaml: string): string {
  const modes = yaml.replace(/^( +mode: )(\d+)$/gm, (_, key: string, value: string) => {
    return `${key}0${Number(value).toString(8)}`;
  });
  return modes.replace(/^( +(?:overwrite|enabled|tpm2|discard): )true$/gm, "$1yes");
}
