/** Why a backup or restore failed, as its row will say. */
import type { OperationError } from '#shared/api/agent/operations.ts';

/** `message` is shown to the renter: no secrets and no paths of the host in it. */
export class OperationFailure extends Error {
  override name = 'OperationFailure';
  readonly code: OperationError;

  constructor(code: OperationError, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}
