/** A failed start that the operator can fix. The operator sees the message, one sentence, and no stack. */
export class StartError extends Error {
  override readonly name = "StartError";
}
