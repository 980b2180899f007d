/** Objects of the namespace `racks`, for tests that compare manifests. */

export type Manifest = Readonly<Record<string, unknown>>;

const named = (name: string) => ({ metadata: { name, namespace: "racks" } });

export function profile(name: string, spec: object = {}): Manifest {
  const boot = { kernel: `/assets/${name}/vmlinuz` };
  return { apiVersion: "davit.dev/v1alpha1", kind: "Profile", ...named(name), spec: { boot, ...spec } };
}

export function group(name: string, matchLabels: object, spec: object = {}): Manifest {
  const whole = { profileRef: { name }, selector: { matchLabels }, ...spec };
  return { apiVersion: "davit.dev/v1alpha1", kind: "Group", ...named(name), spec: whole };
}

export function machine(name: string, label: string, labels: object): Manifest {
  const spec = { identity: { macs: [label] }, labels };
  return { apiVersion: "davit.dev/v1alpha1", kind: "Machine", ...named(name), spec };
}

export function secret(text: string): Manifest {
  const metadata = { name: "texts", namespace: "racks", labels: { "davit.dev/allow-template": "true" } };
  return { apiVersion: "v1", kind: "Secret", metadata, stringData: { config: text } };
}

/** Manifests as a command reads them. */
export function stream(manifests: readonly Manifest[]): string {
  return manifests.map((each) => JSON.stringify(each)).join("\n---\n");
}
