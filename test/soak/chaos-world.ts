/**
 * A marketplace in separate processes, on a separate engine and database server: central API, validator, three agents
 * with their SSH gateways, a provider, and renters with money. The caller must run in a network namespace that it may
 * change.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgentClient } from '#shared/api/agent/agent-client.ts';
import { enrolmentExpiry, signEnrolment, writeEnrolment } from '#shared/api/agent/identity.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { agentArguments, gatewayArguments } from '#shared/runtime/node-process.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { openIdentity, selfSignedPin } from '#shared/signing/identity.ts';
import { createSignedFetch } from '#shared/signing/signed-fetch.ts';
import { createSigner, type LocalSigner } from '#shared/signing/sr25519.ts';
import { createSecureTransport } from '#shared/tls/transport.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { readCheckPolicy } from '../../validator/checks/check-policy.ts';
import { LOCAL_CHECKS } from '../../validator/embedded/local-policies.ts';
import { createPortalClient, logInToPortal } from '../../validator/provider-cli/portal-client.ts';
import { startOwnEngine } from '../fakes/engine/own-engine.ts';
import { eventually } from '../fakes/eventually.ts';
import { createDatabaseIn, startPostgresServer } from '../fakes/external/postgres-server.ts';
import { CENTRAL_TEST_SETTINGS } from '../fakes/scenes/central-process.ts';
import { type ChaosAccount, createAccount } from './chaos-client.ts';
import { createService, type Service } from './chaos-services.ts';

const CENTRAL_PORT = 8000;
const VALIDATOR_PORT = 8090;
const FIRST_AGENT_PORT = 8080;
const FIRST_POD_PORT = 20_000;
const PORTS_PER_AGENT = 200;
const GPU = 'NVIDIA L40S';
const IMAGE = 'podwright.local/base:1';
const NODES = 3;
const ACCOUNTS = 3;
/** The highest price of this GPU: each second costs 889 micro-dollars. */
const USD_PER_GPU_HOUR = 3.2;
/** Time limit for the first full inspection of the nodes, on a busy computer. */
const VERIFIED_WITHIN_MS = 900_000;
const POLL_MS = 1_000;
const ENROLLED_DAYS = 365;

export type ChaosWorld = Awaited<ReturnType<typeof createChaosWorld>>;
export type ChaosNode = { id: string; port: number; agent: Service; ssh: Service };

/**
 * Needs root. `logs` is a folder for the output of the services. Rejects when `signal` aborts; then, and after `close`,
 * only the logs remain.
 */
export async function createChaosWorld(logs: string, signal: AbortSignal) {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-chaos-'));
  const secrets = mkdtempSync('/dev/shm/podwright-chaos-');
  const keys = { central: newKey(), validator: newKey(), provider: newKey(), reader: newKey() };
  const closers: (() => Promise<unknown>)[] = [];
  mkdirSync(logs, { recursive: true });

  function newKey(): { seed: Uint8Array; signer: LocalSigner } {
    const seed = systemRandom.bytes(32);
    return { seed, signer: createSigner(seed) };
  }
  async function close(): Promise<void> {
    for (const each of closers.splice(0).reverse()) await each();
    rmSync(secrets, { recursive: true, force: true });
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
  /** Starts a service; `close` stops it. */
  async function started(service: Service): Promise<Service> {
    signal.throwIfAborted();
    closers.push(service.kill);
    await service.start();
    return service;
  }

  try {
    const own = await startOwnEngine({ sharesNetwork: true });
    closers.push(own.remove);
    const postgres = await startPostgresServer({ keepsCommits: true });
    closers.push(postgres.remove);
    const database = await createDatabaseIn(postgres.folder, 'central');
    const central = await started(centralService(database));
    const origin = `http://127.0.0.1:${CENTRAL_PORT}`;
    const validator = await started(validatorService(origin));
    const portalUrl = `${origin}/portal`;
    const token = await logInToPortal(portalUrl, keys.provider.signer, systemClock);
    const portal = createPortalClient({ portalUrl, token });
    const nodes = await Promise.all(
      Array.from({ length: NODES }, async (_, index): Promise<ChaosNode> => {
        const port = FIRST_AGENT_PORT + index;
        const offer = { ip_address: '127.0.0.1', port, gpu_type: GPU, gpu_count: 1 };
        const { id } = await portal.addNode({ ...offer, price_per_gpu: USD_PER_GPU_HOUR });
        enrol(id);
        const plan = { index, id, socketPath: own.socketPath };
        const [agent, ssh] = await Promise.all([
          started(agentService(plan)),
          started(sshService(plan)),
        ]);
        return { id, port, agent, ssh };
      }),
    );
    await eventually(
      'the validator has verified the nodes',
      async () => {
        await systemClock.sleep(POLL_MS, signal);
        return (await portal.nodes()).every(({ status }) => status === 'available');
      },
      VERIFIED_WITHIN_MS,
    ).catch(async (error: Error) => {
      signal.throwIfAborted();
      const reasons = (await portal.nodes()).map(({ blocking_reasons: all }) => all);
      throw new Error(`${error.message}: ${JSON.stringify(reasons)}`);
    });
    const accounts: ChaosAccount[] = [];
    for (let index = 0; index < ACCOUNTS; index += 1) {
      accounts.push(await createAccount(origin, index));
    }
    return {
      origin,
      database,
      own,
      engine: createDockerodeEngine({ socketPath: own.socketPath, clock: systemClock }),
      postgres,
      central,
      validator,
      nodes,
      accounts,
      /** Every service, in the order of their start. */
      services: [central, validator, ...nodes.flatMap(({ agent, ssh }) => [agent, ssh])],
      inventoryOf: (node: ChaosNode) => readerOf(node).inventory(),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }

  function centralService(database: string): Service {
    const home = join(folder, 'central');
    mkdirSync(home, { mode: 0o700 });
    return createService(logs, {
      name: 'central',
      arguments: [programFile('validator/central/main.ts')],
      ready: 'central API ready',
      environment: {
        ...CENTRAL_TEST_SETTINGS,
        CENTRAL_HOME: home,
        CENTRAL_DATABASE: database,
        CENTRAL_PORT: String(CENTRAL_PORT),
        CENTRAL_SEED_FILE: seedFile('central'),
        CENTRAL_GATEWAY_URL: `http://127.0.0.1:${VALIDATOR_PORT}`,
        CENTRAL_GATEWAY_HOTKEY: keys.validator.signer.hotkey,
        CENTRAL_PAYMENTS: 'simulated',
        CENTRAL_TOP_UP_WAIT_HOURS: '0',
        CENTRAL_METER_TICK_SECONDS: '5',
      },
    });
  }

  function validatorService(origin: string): Service {
    const home = join(folder, 'validator');
    mkdirSync(home, { mode: 0o700 });
    const policyFile = join(folder, 'checks.json');
    const checks = { ...readCheckPolicy(), ...LOCAL_CHECKS, template_images: [IMAGE] };
    writeFileSync(policyFile, JSON.stringify(checks));
    return createService(logs, {
      name: 'validator',
      arguments: [programFile('validator/main.ts')],
      ready: 'validator ready',
      environment: {
        VALIDATOR_HOME: home,
        VALIDATOR_SEED_FILE: seedFile('validator'),
        VALIDATOR_PORT: String(VALIDATOR_PORT),
        VALIDATOR_CENTRAL_URL: `${origin}/api`,
        VALIDATOR_CENTRAL_HOTKEY: keys.central.signer.hotkey,
        VALIDATOR_CHECK_INTERVAL_S: '20',
        VALIDATOR_LIST_INTERVAL_S: '1',
        VALIDATOR_CHECK_POLICY: policyFile,
        VALIDATOR_ACCEPT_SIMULATED: 'true',
      },
    });
  }

  type AgentPlan = { index: number; id: string; socketPath: string };

  function agentService({ index, id, socketPath }: AgentPlan): Service {
    const first = FIRST_POD_PORT + index * PORTS_PER_AGENT;
    const [commander, reader] = [keys.validator.signer.hotkey, keys.reader.signer.hotkey];
    return createService(logs, {
      name: `agent-${index + 1}`,
      arguments: agentArguments(),
      ready: null,
      environment: {
        AGENT_EXECUTOR_ID: id,
        AGENT_HOME: agentHome(id),
        AGENT_HOST: '127.0.0.1',
        AGENT_PORT: String(FIRST_AGENT_PORT + index),
        AGENT_PORT_RANGE: `${first}-${first + PORTS_PER_AGENT - 1}`,
        AGENT_DOCKER_SOCKET: socketPath,
        AGENT_GPU: 'simulated',
        AGENT_SIMULATED_GPUS: GPU,
        AGENT_SECRETS_FOLDER: join(secrets, id),
        AGENT_TRUSTED_KEYS: `${commander}=validator-control+validator-read,${reader}=validator-read`,
        AGENT_EXIT_WITH_PARENT: 'true',
      },
    });
  }

  function sshService({ index, id, socketPath }: AgentPlan): Service {
    return createService(logs, {
      name: `ssh-${index + 1}`,
      arguments: gatewayArguments(),
      ready: null,
      environment: {
        SSH_SNAPSHOT: join(agentHome(id), 'ssh', 'gateway.json'),
        SSH_DOCKER_SOCKET: socketPath,
        SSH_EXIT_WITH_PARENT: 'true',
      },
    });
  }

  function agentHome(id: string): string {
    return join(folder, `agent-${id}`);
  }

  function seedFile(name: 'central' | 'validator'): string {
    const path = join(folder, `${name}.seed`);
    writeFileSync(path, Buffer.from(keys[name].seed).toString('hex'), { mode: 0o600 });
    return path;
  }

  /** Enrols an agent as `agent enrol` does. */
  function enrol(id: string): void {
    const home = agentHome(id);
    mkdirSync(home, { mode: 0o700 });
    const { publicKey: public_key } = openIdentity(home, systemRandom);
    const expires_ms = enrolmentExpiry(ENROLLED_DAYS, systemClock.now());
    const request = { executor_id: id, public_key, expires_ms };
    writeEnrolment(home, signEnrolment(request, keys.provider.signer), systemRandom);
  }

  /** Client of an agent that may only read. */
  function readerOf({ id, port }: ChaosNode) {
    const trust = selfSignedPin(openIdentity(agentHome(id), systemRandom).publicKey);
    if (trust === null) throw new Error(`no key in ${agentHome(id)}`);
    const send = createSignedFetch({
      baseUrl: `https://127.0.0.1:${port}`,
      audience: id,
      signer: keys.reader.signer,
      clock: systemClock,
      random: systemRandom,
      transport: createSecureTransport({ trust, clock: systemClock }),
    });
    return createAgentClient({ send, clock: systemClock });
  }
}

function programFile(path: string): string {
  return new URL(`../../${path}`, import.meta.url).pathname;
}
