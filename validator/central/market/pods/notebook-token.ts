/** The tokens of notebook servers: made again when needed instead of being kept (contract 5.1, jupyter_url). */
import { createHmac } from 'node:crypto';
import { deriveKey } from '../../accounts/auth/derived-key.ts';
import type { Pod } from '../../platform/database/tables.ts';

/** 128 bits, as many as a random token has. */
const TOKEN_HEX_DIGITS = 32;

export type NotebookTokenOf = (pod: Pick<Pod, 'id' | 'jupyter_requests'>) => string;

/** One per pod and request; nobody can tell one from another without the deployment's secret. */
export function createNotebookTokens(secret: Uint8Array): NotebookTokenOf {
  const key = deriveKey(secret, 'notebook-token');
  return ({ id, jupyter_requests }) =>
    createHmac('sha256', key)
      .update(`${id}:${jupyter_requests}`)
      .digest('hex')
      .slice(0, TOKEN_HEX_DIGITS);
}
