/** An OAuth 2 provider on loopback. A code is valid once, for its client, redirect and PKCE challenge. */
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';

const CLIENT = { id: 'podwright', secret: 'chat secret' };
export const REDIRECT_URL = 'https://console.example/chat';

type Grant = { challenge: string; redirectUri: string; userId: string };

export type OAuthProvider = Awaited<ReturnType<typeof startOAuthProvider>>;

/** Starts the provider. The caller must call `close()`. */
export async function startOAuthProvider() {
  const codes = new Map<string, Grant>();
  const tokens = new Map<string, string>();
  let failing = false;

  /** Exchanges a code for a token (RFC 6749 4.1.3, RFC 7636 4.6). */
  async function exchange(request: IncomingMessage): Promise<[number, object]> {
    const basic = Buffer.from(`${CLIENT.id}:${encodeURIComponent(CLIENT.secret)}`);
    if (request.headers.authorization !== `Basic ${basic.toString('base64')}`) {
      return [401, { error: 'invalid_client' }];
    }
    const form = new URLSearchParams(await bodyOf(request));
    const grant = codes.get(form.get('code') ?? '');
    codes.delete(form.get('code') ?? '');
    const verifier = form.get('code_verifier') ?? '';
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    const isGood =
      grant !== undefined &&
      form.get('grant_type') === 'authorization_code' &&
      form.get('redirect_uri') === grant.redirectUri &&
      /^[\w.~-]{43,128}$/.test(verifier) &&
      challenge === grant.challenge;
    if (!isGood) return [400, { error: 'invalid_grant' }];
    const token = randomUUID();
    tokens.set(token, grant.userId);
    return [200, { access_token: token, token_type: 'Bearer', expires_in: 600 }];
  }

  function user(request: IncomingMessage): [number, object] {
    const id = tokens.get((request.headers.authorization ?? '').replace(/^Bearer /, ''));
    return id === undefined
      ? [401, { error: 'invalid_token' }]
      : [200, { id, username: `u-${id}` }];
  }

  const server = createServer(async (request, response) => {
    const [status, body] = failing
      ? [503, {}]
      : request.url === '/token'
        ? await exchange(request)
        : user(request);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const origin = `http://127.0.0.1:${address.port}`;

  return {
    options: {
      authorizeUrl: `${origin}/authorize?prompt=consent`,
      tokenUrl: `${origin}/token`,
      userUrl: `${origin}/user`,
      clientId: CLIENT.id,
      clientSecret: CLIENT.secret,
      scope: 'identify',
      redirectUrl: REDIRECT_URL,
    },
    /** Logs a user in and grants access, as a browser does. Returns the parameters of the redirect. */
    allow(authorizationUrl: string, userId: string): { code: string; state: string } {
      const { origin: at, pathname, searchParams: query } = new URL(authorizationUrl);
      const redirectUri = query.get('redirect_uri') ?? '';
      const isGood =
        at === origin &&
        pathname === '/authorize' &&
        query.get('prompt') === 'consent' &&
        query.get('response_type') === 'code' &&
        query.get('client_id') === CLIENT.id &&
        query.get('scope') === 'identify' &&
        redirectUri === REDIRECT_URL &&
        query.get('code_challenge_method') === 'S256';
      if (!isGood) throw new Error(`the provider refuses ${authorizationUrl}`);
      const code = randomUUID();
      const challenge = query.get('code_challenge') ?? '';
      codes.set(code, { challenge, redirectUri, userId });
      return { code, state: query.get('state') ?? '' };
    },
    fail(next: boolean): void {
      failing = next;
    },
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
