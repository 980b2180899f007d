/** Texts of manifests for tests. */

export function profileText(name: string, spec = "  generic: {inline: hello}"): string {
  return `apiVersion: davit.dev/v1alpha1\nkind: Profile\nmetadata: {name: ${name}}\nspec:\n${spec}\n`;
}

export function groupText(name: string, spec = `  selector: {matchLabels: {role: ${name}}}`): string {
  const head = `apiVersion: davit.dev/v1alpha1\nkind: Group\nmetadata: {name: ${name}}\n`;
  return `${head}spec:\n  profileRef: {name: web}\n${spec}\n`;
}

export function stream(...documents: readonly string[]): string {
  return documents.join("---\n");
}

/** Names that every object of JavaScript has, too. */
export const oddNames = ["constructor", "toString", "valueOf", "hasOwnProperty", "prototype"];

/** Numbers as they are written, and what they are. */
export const exactNumbers: readonly { readonly text: string; readonly value: number | string }[] = [
  { text: "9007199254740991", value: 9007199254740991 },
  { text: "-9007199254740991", value: -9007199254740991 },
  { text: "0x1FFFFFFFFFFFFF", value: 9007199254740991 },
  { text: "1.5", value: 1.5 },
  { text: "1.0e+21", value: 1e21 },
  { text: '"12345678901234567890"', value: "12345678901234567890" },
];

/** Specs of Groups as Helm leaves them when a value is empty. */
export const emptiedSpecs: readonly { readonly name: string; readonly spec: string }[] = [
  { name: "the label", spec: "  selector: {matchLabels: {mac: }}" },
  { name: "the labels", spec: "  selector:\n    matchLabels:" },
  { name: "the selector", spec: "  selector:" },
  { name: "the label of a catch-all that was not meant", spec: "  selector: {matchLabels: {mac: ''}}" },
  { name: "matchAll", spec: "  matchAll:" },
];
