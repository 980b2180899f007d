/** Makes metrics that a registry shows. */

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export type Define = ReturnType<typeof definingIn>;

/** Returns functions that make metrics. Each takes the name, the help, and the names of the labels at the end. */
export function definingIn(registry: Registry) {
  const registers = [registry];
  const gauge = <Label extends string = string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name, help, labelNames, registers });
  return {
    registers,
    gauge,
    counter: <Label extends string = string>(name: string, help: string, ...labelNames: Label[]) =>
      new Counter({ name, help, labelNames, registers }),
    histogram: <Label extends string = string>(name: string, help: string, buckets: number[], ...labelNames: Label[]) =>
      new Histogram({ name, help, buckets, labelNames, registers }),
    /** A gauge without a series before its first `set`: an alert on 0 must not fire in a davit without that part. */
    absent: (name: string, help: string) => {
      const made = gauge(name, help);
      made.remove();
      return made;
    },
  };
}
