/**
 * An agent that runs in a container, as its provider made it: named AGENT_UPDATE_CONTAINER, labelled
 * `io.podwright.agent=<executor id>`. Another container with the same settings takes its place; the old one is kept,
 * stopped, as `<name>-previous-<sequence>` until the update after.
 */
import { statfs } from 'node:fs/promises';
import { switcherArguments } from '#shared/runtime/node-process.ts';
import { type ContainerEngine, EngineError, LABELS } from '../containers/engine/engine.ts';
import type { OwnContainer, OwnContainers } from '../containers/engine/own-containers.ts';
import type { Installation, Look, Replacement } from './installation.ts';
import type { SignedImage } from './signed-image.ts';
import type { Target } from './update.state.ts';

export type ContainerInstallationOptions = {
  /** What the agent's container is called. */
  name: string;
  /** Where versions come from. */
  image: SignedImage;
  executorId: string;
  engine: ContainerEngine;
  containers: OwnContainers;
};

const STOP_GRACE_S = 20;
/** Beside what runs: the new version, and as much to spare. */
const ROOM = 2;
const WORDS_LINES = 10;
const MAX_WORDS_CHARS = 2_000;
const NEVER = { Name: 'no', MaximumRetryCount: 0 };

export function createContainerInstallation(
  options: ContainerInstallationOptions,
): Installation & Replacement & { leave(): Promise<void> } {
  const { name, image, executorId, engine, containers } = options;
  const switcher = `${name}-switcher`;
  const ours = { [LABELS.agent]: executorId };
  const labelOf = ({ sequence, digest }: Target) => ({
    ...ours,
    [LABELS.release]: `${sequence}-${digest.slice(7, 19)}`,
  });

  async function own(): Promise<OwnContainer> {
    const found = await containers.find(name);
    const refuse = (why: string) => new Error(`AGENT_UPDATE_CONTAINER ${name}: ${why}`);
    if (found === null) throw refuse('there is no such container');
    if (found.Config.Labels[LABELS.agent] !== executorId) {
      throw refuse(`it lacks the label ${LABELS.agent}=${executorId}`);
    }
    if (found.HostConfig.AutoRemove) throw refuse('made with --rm, it could not be gone back to');
    return found;
  }

  /** What was made for the target, started or not. */
  async function newOf(target: Target): Promise<OwnContainer | null> {
    const [found] = await engine.listContainers(labelOf(target));
    return found === undefined ? null : containers.find(found.id);
  }

  async function requireNew(target: Target): Promise<OwnContainer> {
    const found = await newOf(target);
    if (found === null) throw new Error('the container of the new version is gone');
    return found;
  }

  /** Waits for its end: stopped already is success. */
  const stop = (id: string) => engine.stopContainer(id, STOP_GRACE_S);

  async function unstage(): Promise<void> {
    for (const { id, name: called } of await engine.listContainers(ours)) {
      if (called.startsWith(`${name}-next-`)) await engine.removeContainer(id);
    }
  }

  return {
    kind: 'image-digest',

    async running() {
      const found = await engine.inspectImage((await own()).Image);
      return image.digestsOf(found?.repoDigests ?? []);
    },
    async hasRoom() {
      const size = (await engine.inspectImage((await own()).Image))?.sizeBytes ?? 0;
      // A container's own root lies where the engine has its images.
      const { bavail, bsize } = await statfs('/');
      return bavail * bsize >= ROOM * size;
    },
    fetch: image.fetch,
    async stage(target) {
      const old = await own();
      // One that was made before may lack what its provider has changed since.
      await unstage();
      await containers.createLike(old, {
        name: `${name}-next-${target.sequence}`,
        image: image.referenceOf(target),
        labels: labelOf(target),
      });
    },
    unstage,
    async passage() {
      const { Id, HostConfig } = await own();
      return { old_id: Id, restart_policy: HostConfig.RestartPolicy };
    },
    async startSwitcher() {
      const id = await containers.createBeside(await own(), {
        name: switcher,
        argv: [process.execPath, ...switcherArguments()],
        labels: { [LABELS.switcher]: executorId },
      });
      await engine.startContainer(id);
    },

    // It was made by the agent that asks for it.
    refusal: async () => null,
    async stopOld({ sequence }, { old_id: id }) {
      // The engine starts it again neither when it ends nor when the host boots: two would fight for the home.
      await containers.setRestartPolicy(id, NEVER);
      await stop(id);
      const kept = `${name}-previous-${sequence}`;
      if ((await containers.find(id))?.Name !== kept) await containers.rename(id, kept);
    },
    async startNew(target) {
      const found = await requireNew(target);
      if (found.Name !== name) await containers.rename(found.Id, name);
      await engine.startContainer(found.Id);
    },
    async look(target): Promise<Look> {
      const found = await newOf(target);
      const { Running = false, Restarting = false } = found?.State ?? {};
      return {
        // The engine may have started it again: once ended is ended.
        isAlive: Running && !Restarting && found?.RestartCount === 0,
        host: found === null ? null : addressOf(found),
      };
    },
    async lastWords(target) {
      const found = await newOf(target);
      if (found === null) return '';
      const words: string[] = [];
      const tail = { tail: WORDS_LINES, follow: false };
      const never = new AbortController().signal;
      for await (const { data } of engine.containerLogs(found.Id, tail, never)) {
        words.push(Buffer.from(data).toString('utf8'));
      }
      return words.join('').slice(-MAX_WORDS_CHARS);
    },
    async dropNew(target) {
      const found = await newOf(target);
      if (found === null) return true;
      await containers.setRestartPolicy(found.Id, NEVER);
      await stop(found.Id);
      await engine.removeContainer(found.Id);
      return true;
    },
    async startOld({ old_id: id, restart_policy: policy }) {
      if ((await containers.find(id))?.Name !== name) await containers.rename(id, name);
      await containers.setRestartPolicy(id, policy);
      await engine.startContainer(id);
    },
    async tidy(target, { old_id: oldId }) {
      const kept = [oldId, (await requireNew(target)).Id];
      for (const { id, imageId } of await engine.listContainers(ours)) {
        if (kept.includes(id)) continue;
        await engine.removeContainer(id);
        // What others use of it stays.
        await engine.removeImage(imageId).catch((error: unknown) => {
          if (!(error instanceof EngineError) || error.kind !== 'conflict') throw error;
        });
      }
    },
    /** Ends this switcher for good; what called it may not go on. */
    leave: () => engine.removeContainer(switcher),
  };
}

/** An agent that shares the host's network is asked at the host. */
function addressOf({ HostConfig, NetworkSettings: { Networks } }: OwnContainer): string | null {
  if (HostConfig.NetworkMode === 'host') return '127.0.0.1';
  return Object.values(Networks).find(({ IPAddress }) => IPAddress !== '')?.IPAddress ?? null;
}
