/**
 * The runner's projects, each a stage of `.ci/run`. A folder of test/ belongs to one project; the files that differ from
 * their folder stand below with the reason. test/tidy.test.ts holds that every test file belongs to exactly one.
 */

type ProjectName = "unit" | "integration" | "system" | "chart" | "firmware" | "console";

interface Project {
  readonly name: string;
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

const folders: Readonly<Record<ProjectName, readonly string[]>> = {
  // No other program and no long wait: what `make test-unit` runs in under a minute.
  unit: [
    "assets",
    "behaviour",
    "boot",
    "controller",
    "dhcp",
    "e2e",
    "follow",
    "http",
    "installs",
    "lib",
    "manifests",
    "model",
    "offline/diff",
    "offline/lint",
    "offline/load",
    "options",
    "records",
    "render",
    "sources",
    "store",
    "tools",
    "trust",
  ],
  // davit as a process, or beside programs that Debian has.
  integration: [
    "clients",
    "commands",
    "conformance",
    "docs",
    "durability",
    "etcd-client",
    "fuzz",
    "image",
    "integration",
    "members",
    "import-matchbox",
  ],
  // davit beside an API server.
  system: ["chaos", "cluster", "crds"],
  // What helm makes of the chart.
  chart: ["chart"],
  // Machines in QEMU.
  firmware: ["firmware"],
  // The console in a browser.
  console: ["console"],
};

interface Moved {
  readonly file: string;
  readonly to: ProjectName;
  readonly because: string;
}

const waits = "waits for a folder in real time";
const starts = "starts davit again and again";
const threads = "starts a thread for each test";
const cases = "tries thousands of cases";

/** Files that belong to another project than their folder. */
export const moved: readonly Moved[] = [
  { file: "members/linearizable.test.ts", to: "chart", because: "needs a program that make chart-tools builds" },
  { file: "behaviour/errors.test.ts", to: "integration", because: "needs grub-script-check" },
  { file: "behaviour/limits.test.ts", to: "integration", because: "waits for the limits of slow requests" },
  { file: "behaviour/signatures.test.ts", to: "integration", because: "needs gpg" },
  { file: "boot/render-thread.test.ts", to: "integration", because: threads },
  { file: "controller/crowded-steps.test.ts", to: "integration", because: "renders many large templates" },
  { file: "controller/mass-removal.test.ts", to: "integration", because: "asks for hundreds of machines at each step" },
  { file: "controller/nobody-falls.test.ts", to: "integration", because: cases },
  { file: "controller/trial-thread.test.ts", to: "integration", because: threads },
  { file: "crds/bounds.test.ts", to: "unit", because: "reads the CRDs as files" },
  { file: "crds/crds.test.ts", to: "unit", because: "reads the CRDs as files" },
  { file: "sources/directory/directory-files.test.ts", to: "integration", because: waits },
  { file: "sources/directory/directory.test.ts", to: "integration", because: waits },
  { file: "sources/directory/freshness.test.ts", to: "integration", because: waits },
  { file: "sources/directory/half-written.test.ts", to: "integration", because: waits },
  { file: "sources/directory/no-files.test.ts", to: "integration", because: waits },
  { file: "sources/directory/no-manifests.test.ts", to: "integration", because: waits },
  { file: "sources/directory/parser.test.ts", to: "integration", because: threads },
  { file: "sources/directory/readers.test.ts", to: "integration", because: waits },
  { file: "docs/install-page.test.ts", to: "chart", because: "needs helm" },
  { file: "docs/links.test.ts", to: "unit", because: "reads the pages as files" },
  { file: "follow/copy-file.test.ts", to: "integration", because: cases },
  { file: "follow/follow.test.ts", to: "integration", because: "needs openssl" },
  { file: "http/client-authorities.test.ts", to: "integration", because: "needs openssl" },
  { file: "http/asset-downloads.test.ts", to: "integration", because: "serves 100,000 files" },
  { file: "http/asset-versions.test.ts", to: "integration", because: "changes files for ten seconds" },
  { file: "http/connection-limit.test.ts", to: "integration", because: "needs openssl" },
  { file: "http/history-lost.test.ts", to: "integration", because: "sends a flood" },
  { file: "http/keys-listing.test.ts", to: "integration", because: "waits for slow readers" },
  { file: "http/preview.test.ts", to: "integration", because: cases },
  { file: "http/console/try.test.ts", to: "integration", because: "starts threads" },
  { file: "http/guard/store-guard.test.ts", to: "integration", because: "needs openssl" },
  { file: "sources/kubernetes/attention.test.ts", to: "integration", because: "needs openssl" },
  { file: "sources/kubernetes/client-tls.test.ts", to: "integration", because: "needs openssl" },
  { file: "installs/ledger/kill.test.ts", to: "integration", because: starts },
  { file: "installs/ledger/members.test.ts", to: "integration", because: "needs etcd" },
  { file: "offline/lint/bad-input.test.ts", to: "integration", because: starts },
  { file: "offline/lint/lint.test.ts", to: "integration", because: starts },
  { file: "manifests/example-reports.test.ts", to: "integration", because: "needs curl and busybox" },
  { file: "import-matchbox/kubectl.test.ts", to: "system", because: "needs kube-apiserver" },
  { file: "offline/load/load-manifests.test.ts", to: "integration", because: threads },
  { file: "render/butane-oracle.test.ts", to: "integration", because: "needs ignition-validate" },
  { file: "render/disk-loaders.test.ts", to: "integration", because: "needs grub-script-check" },
  { file: "render/grub.test.ts", to: "integration", because: "needs grub-script-check" },
  { file: "render/ignition-check.test.ts", to: "integration", because: "needs ignition-validate" },
  { file: "trust/sign/key-thread.test.ts", to: "integration", because: threads },
  { file: "trust/sign/signer.test.ts", to: "integration", because: "needs gpg" },
  { file: "trust/sign/signing-key.test.ts", to: "integration", because: "needs gpg" },
  { file: "etcd-client/grpc-transport.test.ts", to: "unit", because: "has a server of its own" },
  { file: "store/replay.test.ts", to: "integration", because: cases },
  { file: "store/restore.test.ts", to: "integration", because: "fails at each call to the disk" },
  { file: "store/wal/crash.test.ts", to: "integration", because: "kills its writer again and again" },
  { file: "store/wal/lock.test.ts", to: "integration", because: "starts processes" },
  { file: "store/wal/start.test.ts", to: "integration", because: "needs a tmpfs" },
  { file: "tools/workflows.test.ts", to: "chart", because: "needs a program that make chart-tools builds" },
  { file: "tools/notices.test.ts", to: "integration", because: "builds the bundle" },
];

/** The projects as vitest.config.ts wants them. The files right in test/ are unit tests. */
export const projects: readonly Project[] = Object.entries(folders).map(([name, inside]) => ({
  name,
  include: [
    ...(name === "unit" ? ["test/*.test.ts"] : []),
    ...inside.map((folder) => `test/${folder}/**/*.test.ts`),
    ...moved.filter(({ to }) => to === name).map(({ file }) => `test/${file}`),
  ],
  exclude: moved.filter(({ to }) => to !== name).map(({ file }) => `test/${file}`),
}));
