/** Blocks each of several pods' operations at one of its engine changes, until all of them are blocked. */
import { type ContainerEngine, LABELS } from '../../../agent/containers/engine/engine.ts';
import type { CallSubject, EngineCall, EngineProxy } from './engine-proxy.ts';

export type CallGate = ReturnType<typeof createCallGate>;

const OBJECT_ID = /\/(containers|networks)\/([0-9a-f]{12,64})\b/;
const POD_IN_NAME = /(?:[?&]name=pod|\/volumes\/podwright)-([0-9a-f-]{36})/;

/** Returns true if a call changes something in the engine. */
export const isChange = (call: EngineCall) => !call.startsWith('GET');

/** Creates the gate. `engine` is a client that does not pass through the proxy. */
export function createCallGate(proxy: EngineProxy, engine: ContainerEngine) {
  const pods = new WeakMap<CallSubject, string>();

  /** Returns the id of the pod that a call concerns; empty if there is none. */
  async function podOf(subject: CallSubject): Promise<string> {
    const known = pods.get(subject) ?? (await find(subject));
    pods.set(subject, known);
    return known;
  }

  async function find({ url, text }: CallSubject): Promise<string> {
    const named = POD_IN_NAME.exec(url)?.[1];
    if (named !== undefined) return named;
    if (text !== '') return JSON.parse(text).Labels?.[LABELS.pod] ?? '';
    const [, kind, id] = OBJECT_ID.exec(url) ?? [];
    if (id === undefined) return '';
    const found =
      kind === 'containers'
        ? await engine.inspectContainer(id)
        : (await engine.listNetworks({ [LABELS.managed]: '1' })).find((each) => each.id === id);
    return found?.labels[LABELS.pod] ?? '';
  }

  return {
    /** Records the changes made for `podId` while `work` runs. */
    async record(podId: string, work: () => Promise<unknown>): Promise<EngineCall[]> {
      const calls: EngineCall[] = [];
      proxy.watch(async (call, moment, subject) => {
        if (moment !== 'before' || !isChange(call)) return;
        if ((await podOf(subject)) === podId) calls.push(call);
      });
      await work();
      proxy.watch(() => undefined);
      return calls;
    },
    /** From now on blocks the `index`th change of each pod at `moment`. `release` makes the blocked calls fail. */
    hold(podIds: readonly string[], index: number, moment: 'before' | 'after') {
      const seen = new Map(podIds.map((id) => [id, -1]));
      const held = new Map<string, EngineCall>();
      const gate = Promise.withResolvers<void>();
      proxy.watch(async (call, at, subject) => {
        if (!isChange(call)) return;
        const podId = await podOf(subject);
        const count = (seen.get(podId) ?? Number.NaN) + (at === 'before' ? 1 : 0);
        if (Number.isNaN(count)) return;
        seen.set(podId, count);
        if (count !== index || at !== moment) return;
        held.set(podId, call);
        await gate.promise;
        return 'drop';
      });
      return {
        /** Blocked calls by pod. */
        held,
        release(): void {
          proxy.watch(() => undefined);
          gate.resolve();
        },
      };
    },
  };
}
