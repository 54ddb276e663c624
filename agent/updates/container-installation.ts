/**
 * An agent that runs in a container, as its provider made it: named AGENT_UPDATE_CONTAINER, labelled
 * `io.podwright.agent=<executor id>`. Another container with the same settings takes its place; the old one is kept,
 * stopped, as `<name>-previous-<sequence>` until the update after.
 */
import { statfs } from 'node:fs/promises';
import { switcherArguments } from '#shared/node-launch.ts';
import { type ContainerEngine, EngineError, LABELS } from '../docker/engine.ts';
import type { OwnContainer, OwnContainers } from '../docker/own-containers.ts';
import type { Installation, Look, Replacement } from './installation.ts';
import type { Target } from './update.state.ts';

export type ContainerInstallationOptions = {
  /** What the agent's container is called. */
  name: string;
  /** The repository that versions come from. */
  image: string;
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
): Installation & Replacement {
  const { name, image, executorId, engine, containers } = options;
  const switcher = `${name}-switcher`;
  const ours = { [LABELS.agent]: executorId };
  const labelOf = ({ sequence, digest }: Target) => ({
    ...ours,
    [LABELS.release]: `${sequence}-${digest.slice(7, 19)}`,
  });
  const referenceOf = ({ digest }: Target) => `${image}@${digest}`;

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

  async function runningPods(): Promise<string[]> {
    const labels = { [LABELS.executor]: executorId, [LABELS.kind]: 'pod' };
    const pods = await engine.listContainers(labels);
    return pods.filter(({ status }) => status === 'running').map(({ id }) => id);
  }

  return {
    kind: 'image-digest',

    async running() {
      const found = await engine.inspectImage((await own()).Image);
      return digestsIn(image, found?.repoDigests ?? []);
    },
    async hasRoom() {
      const size = (await engine.inspectImage((await own()).Image))?.sizeBytes ?? 0;
      // A container's own root lies where the engine has its images.
      const { bavail, bsize } = await statfs('/');
      return bavail * bsize >= ROOM * size;
    },
    async fetch(target, signal) {
      const reference = referenceOf(target);
      if ((await engine.inspectImage(reference)) === null) {
        await engine.pullImage(reference, { onProgress: () => undefined }, signal);
      }
      const found = await engine.inspectImage(reference);
      if (digestsIn(image, found?.repoDigests ?? []).includes(target.digest)) return;
      throw new EngineError('image_digest_mismatch', `${reference} is not what was pulled`);
    },
    async stage(target) {
      const old = await own();
      // One that was made before may lack what its provider has changed since.
      await unstage();
      await containers.createLike(old, {
        name: `${name}-next-${target.sequence}`,
        image: referenceOf(target),
        labels: labelOf(target),
      });
    },
    unstage,
    async passage() {
      const { Id, HostConfig } = await own();
      return {
        old_id: Id,
        restart_policy: HostConfig.RestartPolicy,
        pods: await runningPods(),
        back: null,
      };
    },
    async startSwitcher() {
      const id = await containers.createBeside(await own(), {
        name: switcher,
        argv: [process.execPath, ...switcherArguments()],
        labels: { [LABELS.switcher]: executorId },
      });
      await engine.startContainer(id);
    },

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
        pods: await runningPods(),
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
      if (found === null) return;
      await containers.setRestartPolicy(found.Id, NEVER);
      await stop(found.Id);
      await engine.removeContainer(found.Id);
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
    leave: () => engine.removeContainer(switcher),
  };
}

/** An agent that shares the host's network is asked at the host. */
function addressOf({ HostConfig, NetworkSettings: { Networks } }: OwnContainer): string | null {
  if (HostConfig.NetworkMode === 'host') return '127.0.0.1';
  return Object.values(Networks).find(({ IPAddress }) => IPAddress !== '')?.IPAddress ?? null;
}

/** The engine calls images of Docker Hub by short names. */
function digestsIn(image: string, repoDigests: readonly string[]): string[] {
  const short = image.replace(/^docker\.io\/(?:library\/)?/, '');
  return repoDigests.flatMap((each) => {
    const [repository = '', digest = ''] = each.split('@');
    return [image, short].includes(repository) ? [digest] : [];
  });
}
