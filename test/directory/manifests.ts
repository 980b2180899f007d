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
