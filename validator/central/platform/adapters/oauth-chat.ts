/** Identifies users of a chat platform by OAuth 2. The access token is used once and not stored. */
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { ChatPlatform, ChatUser } from '../ports.ts';

export type OAuthChatOptions = {
  authorizeUrl: string;
  tokenUrl: string;
  userUrl: string;
  clientId: string;
  clientSecret: string;
  scope: string;
  /** Page to which the platform redirects. The page passes code and state to GET /users/me/chat/callback. */
  redirectUrl: string;
};

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;

const Token = z.object({ access_token: z.string().min(1), token_type: z.string().optional() });
const User = z.object({
  id: z.union([z.string().min(1).max(100), z.number().int()]),
  username: z.string().max(200).optional(),
  name: z.string().max(200).optional(),
});

/** Does not follow redirects, so that no other server receives the client secret. */
export function createOAuthChat(options: OAuthChatOptions, clock: Clock): ChatPlatform {
  async function request<T>(schema: z.ZodType<T>, url: string, init: RequestInit): Promise<T> {
    const answer = await fetchJson(url, {
      ...init,
      redirect: 'error',
      signal: clock.deadline(TIMEOUT_MS),
    });
    if (answer.status >= 400 && answer.status < 500) {
      throw new ApiError('bad_request', 'The chat platform refused the code', {
        hint: 'Start the link again.',
      });
    }
    const parsed = schema.safeParse(answer.body);
    if (answer.status === 200 && parsed.success) return parsed.data;
    throw unavailable(new Error(`unexpected response with status ${answer.status}`));
  }

  return {
    authorizationUrl({ state, codeChallenge }) {
      const url = new URL(options.authorizeUrl);
      const parameters = {
        response_type: 'code',
        client_id: options.clientId,
        redirect_uri: options.redirectUrl,
        scope: options.scope,
        state,
        code_challenge: codeChallenge,
        code_challenge_method: 'S256',
      };
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
      return url.href;
    },

    async identify({ code, verifier }): Promise<ChatUser> {
      const { access_token: token } = await request(Token, options.tokenUrl, {
        method: 'POST',
        headers: { Accept: 'application/json', Authorization: basic(options) },
        body: new URLSearchParams({
          grant_type: 'authorization_code',
          code,
          redirect_uri: options.redirectUrl,
          code_verifier: verifier,
        }),
      });
      const { id, username, name } = await request(User, options.userUrl, {
        headers: { Accept: 'application/json', Authorization: `Bearer ${token}` },
      });
      return { id: String(id), username: username ?? name ?? String(id) };
    },
  };
}

/** Client authentication of RFC 6749, section 2.3.1. */
function basic({ clientId, clientSecret }: OAuthChatOptions): string {
  const pair = [clientId, clientSecret].map((part) => encodeURIComponent(part)).join(':');
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

/** Reads at most MAX_ANSWER_BYTES. `body` is null unless it is JSON. */
async function fetchJson(url: string, init: RequestInit) {
  try {
    const response = await fetch(url, init);
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) throw new Error('the response is too long');
      chunks.push(chunk);
    }
    return { status: response.status, body: jsonOrNull(Buffer.concat(chunks).toString('utf8')) };
  } catch (error) {
    throw unavailable(error);
  }
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function unavailable(cause: unknown): ApiError {
  return new ApiError('upstream_unavailable', 'The chat platform does not respond', {
    hint: 'Start the link again in a minute.',
    cause,
  });
}
