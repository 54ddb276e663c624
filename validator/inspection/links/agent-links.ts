/** Connections to agents: one link per agent, opened by the first request and cached. */
import { createAgentClient } from '#shared/api/agent/agent-client.ts';
import { createSignedConnect, type SignedConnect } from '#shared/api/agent/connect.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSignedFetch, type SignedFetch } from '#shared/signing/signed-fetch.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { findPeerRefusal } from '#shared/tls/peer.ts';
import { observePort } from '#shared/tls/port-protocol.ts';
import type { PortFacts } from '../../checks/measured.ts';
import type { AgentIdentitiesTable, EvidenceStore, StoreDb } from '../../store/tables.ts';
import type { KnownIdentity } from './identity.state.ts';
import { type AgentLink, type AgentTls, agentUrlOf, checkedAnswer, openLink } from './open-link.ts';

export type AgentLinksOptions = {
  store: EvidenceStore;
  signer: Signer;
  clock: Clock;
  random: Random;
  tls: AgentTls;
};

export type AgentLinks = ReturnType<typeof createAgentLinks>;

/** Maximum number of cached links; beyond this the oldest is closed. */
const MAX_LINKS = 10_000;

type CachedLink = { address: string; opening: Promise<AgentLink> };

export function createAgentLinks({ store, signer, clock, random, tls }: AgentLinksOptions) {
  const links = new Map<string, CachedLink>();

  /** Returns the link to an agent, opening it if necessary. Concurrent callers share one opening. */
  function linkTo(executor: ExecutorToCheck): Promise<AgentLink> {
    const address = addressOf(executor);
    const cached = links.get(executor.id);
    if (cached?.address === address) return cached.opening;
    drop(executor.id);
    const [oldest] = links.keys();
    if (oldest !== undefined && links.size >= MAX_LINKS) drop(oldest);
    const opening = open(executor);
    links.set(executor.id, { address, opening });
    opening.catch(() => dropIf(executor.id, opening));
    return opening;
  }

  async function open(executor: ExecutorToCheck): Promise<AgentLink> {
    const row = await findIdentity(store, executor.id);
    const known = row === null ? null : knownFrom(row);
    const link = await openLink(executor, known, { clock, tls });
    const { hotkey, publicKey, enrolledUntilMs } = link.identity;
    await saveIdentity(store, {
      executor_id: executor.id,
      hotkey,
      public_key: publicKey,
      enrolled_until_ms: enrolledUntilMs,
    });
    return link;
  }

  function drop(executorId: string): void {
    links
      .get(executorId)
      ?.opening.then(({ transport }) => transport.close())
      .catch(() => undefined);
    links.delete(executorId);
  }

  function dropIf(executorId: string, opening: Promise<AgentLink>): void {
    if (links.get(executorId)?.opening === opening) drop(executorId);
  }

  /**
   * Runs `work` on the agent's link. After a refusal of the peer, the next request reads the identity again, because
   * certificate or enrolment may have been renewed. A `TLS_` refusal means that nothing was sent, so the work is
   * retried once.
   */
  async function withLink<T>(
    executor: ExecutorToCheck,
    work: (link: AgentLink) => Promise<T>,
  ): Promise<T> {
    for (let isFirst = true; ; isFirst = false) {
      const opening = linkTo(executor);
      const link = await opening;
      try {
        return await work(link);
      } catch (error) {
        const refusal = findPeerRefusal(error);
        if (refusal !== null) dropIf(executor.id, opening);
        if (!isFirst || refusal?.reason.startsWith('TLS_') !== true) throw error;
      }
    }
  }

  const callerOf = ({ baseUrl, identity, transport }: AgentLink, executorId: string) => ({
    baseUrl,
    audience: executorId,
    signer,
    clock,
    random,
    transport,
    checkResponse: (answer: Response, nonce: string) =>
      checkedAnswer(answer, nonce, { identity, executorId }),
  });

  /** Rejects as SignedFetch does, and with PeerRefused. Sends no request before the agent's identity is verified. */
  function sendTo(executor: ExecutorToCheck): SignedFetch {
    return (request) =>
      withLink(executor, (link) => createSignedFetch(callerOf(link, executor.id))(request));
  }

  return {
    sendTo,
    clientOf: (executor: ExecutorToCheck) => createAgentClient({ send: sendTo(executor), clock }),
    connectTo(executor: ExecutorToCheck): SignedConnect {
      return (request) =>
        withLink(executor, (link) =>
          createSignedConnect(callerOf(link, executor.id))(request),
        ).catch(asApiError);
    },
    /** Rejects as `sendTo`'s requests do. */
    async identityOf(executor: ExecutorToCheck): Promise<KnownIdentity> {
      return (await linkTo(executor)).identity;
    },
    /** Observes the port of an agent that did not answer. Never rejects. */
    async observePort(executor: ExecutorToCheck): Promise<PortFacts> {
      const { executor_ip_address: host, executor_ip_port: port } = executor;
      const sent = agentUrlOf(executor, tls).startsWith('https:') ? 'tls' : 'http';
      return { sent, found: await observePort(clock, { host, port: Number(port) }) };
    },
    /** Closes all links; the next request reads the agent's identity again. */
    closeAll(): void {
      for (const id of [...links.keys()]) drop(id);
    },
  };
}

/** Wraps link errors in ApiError, as SignedConnect promises. */
function asApiError(cause: unknown): never {
  if (cause instanceof ApiError) throw cause;
  const message = `The node did not answer (${messageOf(cause)})`;
  throw new ApiError('upstream_unavailable', message, { cause });
}

/** Key of a link. If any part of the key changes, a new link is opened. */
function addressOf(executor: ExecutorToCheck): string {
  const { executor_ip_address: ip, executor_ip_port: port, miner_hotkey: hotkey } = executor;
  return [ip, port, hotkey].join(' ');
}

function knownFrom(row: { hotkey: string; public_key: string; enrolled_until_ms: number }) {
  const { hotkey, public_key: publicKey, enrolled_until_ms: enrolledUntilMs } = row;
  return { hotkey, publicKey, enrolledUntilMs };
}

export async function findIdentity(
  store: StoreDb,
  executorId: string,
): Promise<AgentIdentitiesTable | null> {
  const query = store.selectFrom('agent_identities').selectAll();
  return (await query.where('executor_id', '=', executorId).executeTakeFirst()) ?? null;
}

export async function saveIdentity(store: StoreDb, row: AgentIdentitiesTable): Promise<void> {
  const { executor_id: _, ...changed } = row;
  await store
    .insertInto('agent_identities')
    .values(row)
    .onConflict((conflict) => conflict.column('executor_id').doUpdateSet(changed))
    .execute();
}
