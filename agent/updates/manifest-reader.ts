/** Asks the marketplace which version of the agent is to run. */

import { boundedText } from '#shared/http/bounded-text.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { PLAIN_TRANSPORT } from '#shared/tls/transport.ts';
import { MAX_DIGEST_BYTES } from '#shared/updates/update-manifest.ts';

const TIMEOUT_MS = 10_000;

/** The answer at `url`, whatever it says; rejects when there is none. What counts in it is signed, so any way there will do. */
export function createManifestReader(url: string, clock: Clock): () => Promise<unknown> {
  return async () => {
    const signal = clock.deadline(TIMEOUT_MS);
    const headers = { accept: 'application/json' };
    const answer = await PLAIN_TRANSPORT.fetch(new URL(url), { method: 'GET', headers, signal });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return JSON.parse(await boundedText(answer, MAX_DIGEST_BYTES));
  };
}
