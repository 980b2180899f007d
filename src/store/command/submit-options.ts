import type { ProposeOptions } from "../core/log-port.ts";
import type { Command } from "./command.ts";

/** How a batch is logged, where it differs from the batches of davit's controller. */
export interface SubmitOptions {
  /**
   * False for a batch that its own conditions protect (`compareAndSwap`, `create`). Every member may log it, even if
   * another member leads. True unless given.
   */
  readonly fenced?: boolean;
  /** False for a batch that may not use the reserve of a full disk. True unless given. */
  readonly frees?: boolean;
}

/**
 * Removals may use the log's reserve on a full disk. So may the batches of davit's controller. They are fenced: the
 * controller of a former leader may have planned its batch before another member took over, and would bring older
 * documents back.
 */
export function proposeOptions(
  { kind }: Command,
  { fenced = true, frees = true }: SubmitOptions,
): ProposeOptions | undefined {
  if (kind === "batch") return { frees, fenced };
  return kind === "delete" || kind === "compareAndDelete" ? { frees: true } : undefined;
}
