/** Feed of deposits: a JSON file or an HTTP service. */
import { readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import type { z } from 'zod';
import { boundedText } from '#shared/http/bounded-text.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { CollateralFeedDocument } from '../../market/collateral/collateral.schemas.ts';
import type { CollateralFeed } from '../ports.ts';

export const COLLATERAL_FEED_VARIABLE = 'CENTRAL_COLLATERAL_FEED';

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 4_000_000;

/**
 * Reads the file at every poll. Throws a ConfigError that names the file and the problem if the file is invalid when
 * the process starts.
 */
export function createFileCollateralFeed(path: string): CollateralFeed {
  try {
    parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new ConfigError(`${COLLATERAL_FEED_VARIABLE}: ${path}: ${messageOf(error)}`);
  }
  return {
    async subjects() {
      const { size } = await stat(path);
      if (size > MAX_BYTES) throw new Error(`${path} is larger than ${MAX_BYTES} bytes`);
      return parse(await readFile(path, 'utf8'));
    },
  };
}

export function createHttpCollateralFeed({
  url,
  clock,
}: {
  url: string;
  clock: Clock;
}): CollateralFeed {
  return {
    async subjects() {
      const response = await fetch(url, {
        headers: { Accept: 'application/json' },
        redirect: 'error',
        signal: clock.deadline(TIMEOUT_MS),
      });
      const text = await boundedText(response, MAX_BYTES);
      if (response.status !== 200)
        throw new Error(`the feed answered with status ${response.status}`);
      return parse(text);
    },
  };
}

function parse(text: string): string[] {
  const parsed = CollateralFeedDocument.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new Error(problemIn(parsed.error));
}

function problemIn({ issues: [problem] }: z.ZodError): string {
  return `${problem?.path.join('.') || 'the document'}: ${problem?.message}`;
}
