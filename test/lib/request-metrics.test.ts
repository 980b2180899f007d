import { expect, it } from "vitest";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";

it.each([1, 255, 256, 1000])("a scrape after %i requests has counted all of them", async (count) => {
  const metrics = createMetrics("test");
  const add = metrics.bootRequestSeries("ipxe", 200);
  metrics.bootRequestSeries("ipxe", 404)(3);
  for (let at = 0; at < count; at++) add(0.25);
  const text = await metrics.text();
  expect(text).toContain(`davit_boot_requests_total{endpoint="ipxe",code="200"} ${count}\n`);
  expect(text).toContain(`davit_boot_request_seconds_bucket{le="0.1",endpoint="ipxe"} 0\n`);
  expect(text).toContain(`davit_boot_request_seconds_bucket{le="0.5",endpoint="ipxe"} ${count}\n`);
  expect(text).toContain(`davit_boot_request_seconds_count{endpoint="ipxe"} ${count + 1}\n`);
  expect(await metrics.text()).toContain(`davit_boot_request_seconds_sum{endpoint="ipxe"} ${count / 4 + 3}\n`);
});
