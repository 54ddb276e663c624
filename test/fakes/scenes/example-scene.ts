/** A market in which the example of every documented request can be sent: one of each object, and texts to replace. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InjectOptions } from 'fastify';
import { signReport } from '#shared/api/central/pod-reports.ts';
import { LatestSetWeightsRequest, signSetWeights } from '#shared/api/central/set-weights.ts';
import { toHex } from '#shared/signing/sr25519.ts';
import { EXAMPLE_IDS } from '../../../validator/central/platform/openapi/example-ids.ts';
import { RECORD_IDS, validatorRecords } from '../../fixtures/validator-records.ts';
import { createBackupScene } from './central-backup-scene.ts';
import { PUBLIC_KEY } from './market-fixture.ts';
import { mailedToken } from './outbox.ts';
import { payIn } from './wallet.ts';

/** Texts in examples in place of values that only a running marketplace has. */
const HOTKEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY';
const UNIX_SECONDS = '1795000000';
const SIGNATURE = '"0x00"';
const MAILED_TOKEN = 'token-from-the-mail';
const TICKET = 'ticket-from-the-link';
const CHAT_STATE = 'state-of-the-link';
const REPORT_DOCUMENT = '"document-of-the-examination"';
const REPORT_SIGNATURE = '"0x01"';

const PAID_UUSD = 50_000_000;

/** Time for which the pod runs before an example refunds it. */
const CHARGED_MS = 600_000;
const SYNC_MS = 10_000;
const ADA = { email: 'ada@example.com', password: 'correct horse battery' };
const GRACE = { email: 'grace@example.com', password: 'correct horse battery' };

/** Body and query of an example. */
type Example = { body: unknown; query: Record<string, string> };

export type ExampleScene = Awaited<ReturnType<typeof createExampleScene>>;

/** The caller must call `close()`. */
export async function createExampleScene() {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-examples-'));
  const scene = await createBackupScene({
    objects: { folder },
    alphaRates: {
      subnets: async () => [
        { netuid: 51, name: 'compute', symbol: 'α', rate_usd: 4, is_default: true },
      ],
    },
    chat: {
      authorizationUrl: ({ state }) => `https://chat.example/authorize?state=${state}`,
      identify: async () => ({ id: 'chat-1', username: 'ada' }),
    },
  });
  const { market, account, node, podId } = scene;
  const { provider, validator, clock } = market;

  async function create(path: string, body: object): Promise<string> {
    const answer = await market.call('POST', path, {
      headers: account.session,
      body: body as Record<string, unknown>,
    });
    if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
    return answer.body.id;
  }

  const portalToken = await market.logIn();
  for (const [path, record] of validatorRecords(node.id)) market.agents.records.set(path, record);
  market.agents.rewardShares = async () => ({ rented: 0.02, idle: 0.01, obstacles: [] });
  await payIn(market.ports.db, account.id, PAID_UUSD);
  await market.ports.db
    .updateTable('accounts')
    .set({ chat_user_id: `chat-${account.id}`, chat_username: 'renter' })
    .where('id', '=', account.id)
    .execute();

  const ids = {
    account: account.id,
    node: node.id,
    pod: podId,
    template: (await scene.template()).id,
    volume: await create('/volumes', { name: 'data' }),
    backup: await scene.backedUp(),
    sshKey: await create('/ssh-keys', { name: 'mine', public_key: PUBLIC_KEY }),
    apiKey: await create('/keys', { name: 'scripts' }),
    machineRequest: await create('/machine-requests', { gpu_class: 'H100', gpu_count: 1 }),
  };
  const others = {
    'docker-credentials': await create('/docker-credentials', {
      docker_username: 'octocat',
      docker_password: 'secret',
    }),
    webhooks: await create('/webhooks', { url: 'https://hooks.example.com/all' }),
  };
  /** Id of an object by the segment of the path before it. */
  const idBySegment: Record<string, string> = {
    ...others,
    'backup-logs': ids.backup,
    billing: provider.hotkey,
    cycles: RECORD_IDS.cycle,
    epochs: RECORD_IDS.epoch,
    evidence: RECORD_IDS.evidence,
    executors: ids.node,
    keys: ids.apiKey,
    'machine-requests': ids.machineRequest,
    pod: ids.pod,
    pods: ids.pod,
    providers: provider.hotkey,
    'ssh-keys': ids.sshKey,
    templates: ids.template,
    'unknown-pods': ids.pod,
    users: ids.account,
    accounts: ids.account,
    validator: validator.hotkey,
    volumes: ids.volume,
  };

  /**
   * Creates what the example of the operation `name` needs: the accounts that examples name, and mails with tokens.
   * Returns the texts to replace in the example.
   */
  async function prepare(name: string): Promise<Record<string, string>> {
    const isSignUp = /^POST \/api\/(?:users|auth\/signup)$/.test(name);
    if (!isSignUp) await market.call('POST', '/users', { body: ADA });
    await market.call('POST', '/users', { body: GRACE });
    if (name.endsWith('/auth/verify-email')) {
      await market.ports.db
        .updateTable('accounts')
        .set({ email_verified_at: null })
        .where('email', '=', ADA.email)
        .execute();
      await market.call('POST', '/auth/resend-verify-email', { body: { email: ADA.email } });
      return { [MAILED_TOKEN]: await mailedToken(market, ADA.email, 'verify-email') };
    }
    if (name.endsWith('/auth/exchange-ticket')) return { [TICKET]: await logInTicket(name) };
    if (name.endsWith('/portal/auth/login')) await setProviderPassword();
    if (name.endsWith('/users/reset-password')) {
      await market.call('POST', '/users/request-reset-password', { body: { email: ADA.email } });
      return { [MAILED_TOKEN]: await mailedToken(market, ADA.email, 'password-reset') };
    }
    if (name.includes(' /api/operator/')) {
      await market.ports.db
        .updateTable('accounts')
        .set({ operator_since: clock.now() })
        .where('id', '=', account.id)
        .execute();
    }
    if (name.endsWith('/refund')) {
      for (let ms = 0; ms < CHARGED_MS; ms += SYNC_MS) {
        await market.sync();
        await clock.advance(SYNC_MS);
      }
      await market.call('DELETE', `/pods/${podId}`, { headers: account.session });
      await market.sync();
    }
    if (name.includes('/unknown-pods/')) {
      market.agents.host(node.id).change(podId, { generation: 9 });
      await clock.advance(SYNC_MS);
      await market.sync();
    }
    if (name.endsWith('/unban')) {
      const url = `/operator/providers/${provider.hotkey}/ban`;
      await market.call('POST', url, { headers: account.session, body: { reason: 'Test' } });
    }
    if (name.endsWith('/outcome')) return examinedReport();
    if (name.endsWith('/chat/callback')) {
      const { body } = await market.call('GET', '/users/me/chat/oauth-url', {
        headers: account.session,
      });
      return { [CHAT_STATE]: stateIn(body.authorization_url) };
    }
    if (name.endsWith('/discord/callback')) {
      const { body } = await market.portal('GET', '/auth/me/discord/oauth-url', {
        token: portalToken,
      });
      return { [CHAT_STATE]: stateIn(body.data.authorization_url) };
    }
    return {};
  }

  async function logInTicket(name: string): Promise<string> {
    if (name.includes(' /portal/')) {
      const { body } = await market.portal('POST', '/auth/tickets', { token: portalToken });
      return body.data.ticket;
    }
    const { body } = await market.call('POST', '/auth/tickets', { headers: account.session });
    return body.ticket;
  }

  async function setProviderPassword(): Promise<void> {
    const message = String(Math.floor(clock.now() / 1_000));
    const signature = toHex(provider.sign(new TextEncoder().encode(message)));
    const signed = { miner_hotkey: provider.hotkey, message, signature };
    await market.portal('POST', '/auth/set-password', {
      body: { ...signed, new_password: ADA.password },
    });
  }

  /** Reports the pod, and examines the report as the validator. */
  async function examinedReport(): Promise<Record<string, string>> {
    const report_id = await create(`/pods/${podId}/report`, { reason: 'other' });
    await market.asValidator('/pod-reports', {});
    await clock.advance(1_000);
    idBySegment['pod-reports'] = report_id;
    const examined = {
      v: 1,
      report_id,
      pod_id: podId,
      executor_id: node.id,
      validator: validator.hotkey,
      examined_at: clock.now(),
      outcome: 'not_confirmed',
      findings: [],
    } as const;
    const signed = await signReport({ ...examined, findings: [] }, validator);
    return {
      [REPORT_DOCUMENT]: JSON.stringify(signed.document),
      [REPORT_SIGNATURE]: JSON.stringify(signed.signature),
    };
  }

  function headersOf(name: string, body: unknown): Promise<Record<string, string>> {
    if (name.includes(' /portal/')) {
      return Promise.resolve({ authorization: `Bearer ${portalToken}` });
    }
    if (!name.includes(' /api/validator/')) return Promise.resolve(account.session);
    if (name.endsWith('/latest-set-weights')) return weightsHeaders(body);
    const timestamp = String(Math.floor(clock.now() / 1_000));
    const signature = toHex(validator.sign(new TextEncoder().encode(timestamp)));
    return Promise.resolve({ hotkey: validator.hotkey, timestamp, signature });
  }

  async function weightsHeaders(body: unknown): Promise<Record<string, string>> {
    const weights = LatestSetWeightsRequest.parse(body);
    return { authorization: await signSetWeights(weights, validator) };
  }

  return {
    market,
    /**
     * Returns the request of an operation's example, with ids, tokens and signatures of this scene. `name` is
     * `METHOD /path` with parameters in braces.
     */
    async requestOf(name: string, example: Example): Promise<InjectOptions> {
      // A log-in in the same second as the scene's would be a replay.
      await clock.advance(1_000);
      const seconds = String(Math.floor(clock.now() / 1_000));
      const replaced: Record<string, string> = {
        ...(await prepare(name)),
        ...Object.fromEntries(
          Object.entries(EXAMPLE_IDS).map(([kind, id]) => [id, ids[kind as keyof typeof ids]]),
        ),
        [HOTKEY]: provider.hotkey,
        [UNIX_SECONDS]: seconds,
        [SIGNATURE]: `"${toHex(provider.sign(new TextEncoder().encode(seconds)))}"`,
      };
      const fill = <T>(value: T): T => JSON.parse(replaceAll(JSON.stringify(value), replaced));
      const body = example.body === undefined ? undefined : fill(example.body);
      const [method = '', path = ''] = name.split(' ');
      const query = new URLSearchParams(fill(example.query)).toString();
      return {
        method: method as 'GET',
        url: `${filled(path, idBySegment)}${query === '' ? '' : `?${query}`}`,
        headers: await headersOf(name, body),
        ...(body === undefined ? {} : { payload: body as object }),
      };
    },
    async close(): Promise<void> {
      await market.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function stateIn(url: string): string {
  return new URL(url).searchParams.get('state') ?? '';
}

function replaceAll(text: string, replaced: Readonly<Record<string, string>>): string {
  return Object.entries(replaced).reduce((result, [from, to]) => result.replaceAll(from, to), text);
}

/** Throws for a parameter without an id. */
function filled(path: string, idBySegment: Readonly<Record<string, string>>): string {
  const segments = path.split('/');
  return segments
    .map((segment, index) => {
      if (!segment.startsWith('{')) return segment;
      const id = idBySegment[segments[index - 1] ?? ''];
      if (id === undefined) throw new Error(`no example id for ${segment} in ${path}`);
      return id;
    })
    .join('/');
}
