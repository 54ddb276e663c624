/** An agent in memory with one pod that tests edit in place, and an SSH gateway whose answer tests set. */
import { PodSpec, type PodSpecInput } from '#shared/api/agent/pod.ts';
import type { GatewayPodStatus, GatewaySnapshot } from '../../../agent/access/ssh/gateway-files.ts';
import type { EngineError } from '../../../agent/containers/engine/engine.ts';
import { openDatabase } from '../../../agent/database/database.ts';
import { SETTLING_MS } from '../../../agent/pods/trial.plan.ts';
import { breakEngine, createFakeEngine, holdEngine } from '../engine/fake-engine.ts';
import { createManualClock } from '../manual-clock.ts';
import { createSeededRandom } from '../seeded-random.ts';
import { createTestAgent, fakeGpus, NO_GATEWAY, podSpec, TEST_HOST } from './test-agent.ts';

const IMAGE = 'registry.example/one:1';
export const OTHER_IMAGE = 'registry.example/two:1';
/** An image that no registry has. */
export const MISSING = 'registry.example/missing:1';
export const ID = '00000000-0000-4000-8000-000000000001';
export const GPUS = [0, 1].map((n) => `GPU-00000000-0000-4000-8000-00000000000${n}`);
const EXECUTOR = '00000000-0000-4000-8000-00000000000e';
/** Number of event loop turns in which any chain of steps that waits only for the fakes completes. */
const TURNS = 30;
export const A_MINUTE_MS = 60_000;
/**
 * Time after which a change counts as successful, plus a margin: the fake engine may be some milliseconds ahead of the
 * clock.
 */
export const PROVEN_MS = SETTLING_MS + 1_000;

export type ChangingPod = ReturnType<typeof createChangingPod>;

/** Creates the scene. The caller must stop `agent()` afterwards. */
export function createChangingPod() {
  const clock = createManualClock();
  const engine = createFakeEngine(clock);
  const store = openDatabase(':memory:');
  let told: GatewaySnapshot = { pods: [] };
  /** The gateway's answer for a container; null makes the gateway unreachable. */
  let login: ((containerId: string) => boolean) | null = null;

  function statusOf(): GatewayPodStatus | null {
    const [pod] = told.pods;
    if (login === null || pod === undefined) return null;
    const { port, container_id } = pod;
    const ready = container_id !== null && login(container_id);
    return { port, container_id, ready, port_taken: false, message: 'no shell', since_ms: 0 };
  }

  function boot(bootId: string) {
    const created = createTestAgent({
      engine,
      clock,
      database: store,
      executorId: EXECUTOR,
      random: createSeededRandom(1),
      host: { ...TEST_HOST, bootId },
      gpus: fakeGpus(GPUS),
      portRange: { first: 20_000, last: 20_003 },
      gatewayLink: {
        ...NO_GATEWAY,
        publish: (snapshot) => {
          told = snapshot;
        },
        statusOf,
      },
    });
    created.start();
    return created;
  }

  engine.addImage(IMAGE, `sha256:${'a1'.repeat(32)}`);
  engine.addImage(OTHER_IMAGE, `sha256:${'b2'.repeat(32)}`);
  let agent = boot('boot');

  /** Runs all work that does not wait for the clock. */
  async function settle(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn += 1) await clock.advance(0);
  }
  const view = () => agent.pods.get(ID);
  const containers = () => [...engine.containers.values()];
  const put = (generation: number, change: Partial<PodSpecInput> = {}) =>
    agent.pods.put(
      ID,
      PodSpec.parse(podSpec({ generation, image: { reference: IMAGE }, ...change })),
    );

  return {
    clock,
    engine,
    settle,
    view,
    put,
    containers,
    agent: () => agent,
    told: () => told,
    running: () => containers().filter(({ status }) => status === 'running'),
    conditionOf: (type: string) => view().conditions.find((each) => each.type === type),
    setLogin(next: (containerId: string) => boolean): void {
      login = next;
    },
    /** Advances the clock and runs what becomes due. */
    async pass(ms: number): Promise<void> {
      await settle();
      await clock.advance(ms);
      await settle();
    },
    /** Launches a pod of generation 1. Rejects if it does not reach the state running. */
    async launched(change: Partial<PodSpecInput> = {}) {
      await put(1, change);
      await settle();
      if (view().phase !== 'running') throw new Error(`the pod is ${view().phase}`);
      return view();
    },
    /** Makes calls of `method` fail, except starts of the container that exists now. */
    breakNew(method: string, kind: EngineError['kind']): () => void {
      const first = view().container_id;
      const isOld = (called: string, id: string) => called === 'startContainer' && id === first;
      return breakEngine(engine, method, kind, isOld);
    },
    hold: (method: string) => holdEngine(engine, method),
    /** Starts another agent on the same store. The caller must stop the previous one first. */
    bootAgain(bootId: string): void {
      agent = boot(bootId);
    },
  };
}
