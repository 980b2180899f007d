import { expect, it, vi } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { renderBoot } from "../../src/render/boot/boot.ts";
import { renderCloudConfig } from "../../src/render/config/check-config.ts";
import { renderIgnition } from "../../src/render/config/ignition.ts";
import { parseTemplate } from "../../src/render/template/template.ts";
import { compile, render, renderErrorOf } from "./fixtures.ts";

const secret = "hunter2-planted-secret";

it.each([
  `{{${secret}`,
  `{{#if ${secret}}}`,
  `{{#if a}}${secret}{{/${secret}}}`,
  `${secret}{{json ${secret}}}}`,
  `{{${secret} "${secret}"}}`,
  `{{a/../${secret}}}`,
  `{{> ${secret}}}`,
  `{{#${secret}}}{{/${secret}}}`,
  `{{"${secret}"}}`,
  `{{!-- ${secret}`,
  `{{@${secret}}}`,
  `{{lower a ${secret}=1}}`,
])("a mistake in the template `%s` is told without quoting it", (template) => {
  expect(JSON.stringify(parseTemplate(template))).not.toContain(secret);
  expectNoLeak(() => compile(template));
});

it.each<{ template: string; variables?: JsonObject }>([
  { template: `{{${secret}}}` },
  { template: "{{a.b}}", variables: { a: secret } },
  { template: "{{macHyphen a}}", variables: { a: secret } },
  { template: "{{join a ','}}", variables: { a: secret } },
  { template: "{{#each a}}{{this}}{{/each}}", variables: { a: Array.from({ length: 100_001 }, () => secret) } },
])("a failed render of `$template` is told without quoting values", ({ template, variables = {} }) => {
  expectNoLeak(() => render(template, variables));
});

it.each([
  `{"ignition": {"version": "3.4.0"}, "x": ${secret}}`,
  `{"${secret}": "${secret}" "x"}`,
  `${secret}: ${secret}: x`,
  `x: *${secret}`,
  `x: !${secret} y\nignition: {version: 3.4.0}`,
  `variant: ${secret}`,
  `variant: fcos\nversion: 1.5.0\n${secret}: x`,
  `variant: fcos\nversion: 1.5.0\nstorage: ${secret}`,
  `variant: fcos\nversion: 1.5.0\nstorage: {files: [{path: ${secret}}]}`,
  `{"${secret}": 0644}`,
  `? [${secret}]\n: ${secret}`,
  secret,
])("an unusable result %j is told without quoting it", (text) => {
  for (const raw of [true, false]) expectNoLeak(() => renderIgnition({ text, raw }));
  expectNoLeak(() => renderCloudConfig(`#cloud-config\n${secret}: ${secret}: x\n${text}`));
});

it("keys that are no texts are not printed as a warning of the process", () => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
  expectNoLeak(() => renderIgnition({ text: `? [${secret}]\n: x`, raw: false }));
  expect(warn).not.toHaveBeenCalled();
  warn.mockRestore();
});

it("an unusable boot section is told without quoting it", () => {
  const boot = { kernel: `/${secret}`, initrd: [], args: [`${secret}\n`], efiInitrd: false };
  expectNoLeak(() => renderBoot(boot, {}, compile));
});

it("a variable of a template from a Secret is not named", () => {
  const error = renderErrorOf(() => render(`{{${secret}}}`, {}));
  expect(error.sentence(true) + error.problem(true)).not.toContain(secret);
  expect(error.problem(false)).toContain(`"${secret}"`);
});

function expectNoLeak(action: () => unknown): void {
  const error = renderErrorOf(action);
  expect(`${error.message} ${error.stack} ${JSON.stringify(error)}`).not.toContain(secret);
  expect(error.cause).toBeUndefined();
}
