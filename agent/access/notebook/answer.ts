/** Whether a notebook server answers as it should: to its token, and to nobody without it. */

import { get } from '#shared/http/node-http.ts';
import type { Clock } from '#shared/runtime/clock.ts';

const ANSWER_WITHIN_MS = 5_000;
const LOOPBACK = '127.0.0.1';

/** - `open`: it lets in whoever comes; such a server must not stay */
export type Answer = 'good' | 'open' | 'none';

export type AskNotebook = {
  /** Whether its token opens it. */
  answers(port: number, token: string): Promise<boolean>;
  /** The same, and whether nothing else does; servers note such tries in their logs. */
  judge(port: number, token: string): Promise<Answer>;
};

/** Asks at the host port that renters use. */
export function createAskNotebook(clock: Clock): AskNotebook {
  function statusOf(port: number, headers: Record<string, string>): Promise<number> {
    const signal = clock.deadline(ANSWER_WITHIN_MS);
    return new Promise((resolve) => {
      const request = get(
        { host: LOOPBACK, port, path: '/api/status', headers, agent: false, signal },
        (response) => {
          resolve(response.statusCode ?? 0);
          response.destroy();
        },
      );
      request.once('error', () => resolve(0));
    });
  }

  async function answers(port: number, token: string): Promise<boolean> {
    return (await statusOf(port, { authorization: `token ${token}` })) === 200;
  }

  return {
    answers,
    async judge(port, token) {
      if (!(await answers(port, token))) return 'none';
      const stranger = await statusOf(port, {});
      if (stranger === 401 || stranger === 403) return 'good';
      return stranger === 0 ? 'none' : 'open';
    },
  };
}
