/** Reads the hotkey that a service reports at its public route `/version`. */
import { z } from 'zod';
import { type Observed, observe } from '#shared/check/observe.ts';
import { boundedText } from '#shared/http/bounded-text.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { explainUrl } from '#shared/tls/port-protocol.ts';
import type { Transport } from '#shared/tls/transport.ts';

const MAX_VERSION_BYTES = 16_384;
const VersionAnswer = z.object({ hotkey: z.string() });

export type HotkeySource = {
  clock: Clock;
  /** Address below which `/version` is, without a slash at the end. */
  baseUrl: string;
  transport: Transport;
  timeoutMs: number;
};

/** Reads the hotkey and closes the transport. Never rejects. Older versions of the central API report no hotkey. */
export async function observeHotkey(source: HotkeySource): Promise<Observed<string>> {
  const { clock, baseUrl, transport, timeoutMs } = source;
  const reading = observe(clock, timeoutMs, () => readHotkey(source));
  return explained(clock, baseUrl, reading).finally(() => transport.close());
}

async function readHotkey(source: HotkeySource): Promise<string> {
  const { clock, baseUrl, transport, timeoutMs } = source;
  const signal = clock.deadline(timeoutMs);
  const init = { method: 'GET', headers: {}, signal };
  const answer = await transport.fetch(new URL(`${baseUrl}/version`), init);
  const parsed = VersionAnswer.safeParse(parseJson(await boundedText(answer, MAX_VERSION_BYTES)));
  if (!parsed.success) throw new Error(`/version answered with status ${answer.status}, no hotkey`);
  return parsed.data.hotkey;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Adds what the port of `url` answers to the problem of a request that got no HTTP response. */
export async function explained<T>(
  clock: Clock,
  url: string,
  observing: Promise<Observed<T>>,
): Promise<Observed<T>> {
  const observed = await observing;
  if (!('problem' in observed) || /with status \d/.test(observed.problem)) return observed;
  return {
    ...observed,
    problem: `${observed.problem}; ${await explainUrl(clock, url, 'the doctor')}`,
  };
}
