/**
 * An agent in a container that its provider created: its name is AGENT_UPDATE_CONTAINER, its label
 * `io.podwright.agent=<executor id>`. An update replaces it with a container of the same settings. The old container is
 * stopped and kept as `<name>-previous-<sequence>` until the next update.
 */
import { statfs } from 'node:fs/promises';
import { switcherArguments } from '#shared/runtime/node-process.ts';
import { type ContainerEngine, EngineError, LABELS } from '../containers/engine/engine.ts';
import type { OwnContainer, OwnContainers } from '../containers/engine/own-containers.ts';
import type { Installation, Replacement } from './installation.ts';
import type { SignedImage } from './signed-image.ts';
import type { Target } from './update.state.ts';

export type ContainerInstallationOptions = {
  /** Name of the agent's container. */
  name: string;
  image: SignedImage;
  executorId: string;
  engine: ContainerEngine;
  containers: OwnContainers;
};

const STOP_GRACE_S = 20;
/** Required free space as a multiple of the image's size: once for the new version, once as a reserve. */
const IMAGES_OF_SPACE = 2;
const LOG_LINES = 10;
const MAX_LOG_CHARS = 2_000;
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
    if (found.HostConfig.AutoRemove)
      throw refuse('it was created with --rm, so a rollback could not start it again');
    return found;
  }

  /** Returns the container of the target, started or not. */
  async function findNew(target: Target): Promise<OwnContainer | null> {
    const [found] = await engine.listContainers(labelOf(target));
    return found === undefined ? null : containers.find(found.id);
  }

  async function requireNew(target: Target): Promise<OwnContainer> {
    const found = await findNew(target);
    if (found === null) throw new Error('the container of the new version is gone');
    return found;
  }

  /** Waits until the container has ended. Succeeds if it is already stopped. */
  const stop = (id: string) => engine.stopContainer(id, STOP_GRACE_S);

  async function unstage(): Promise<void> {
    for (const { id, name: called } of await engine.listContainers(ours)) {
      if (called.startsWith(`${name}-next-`)) await engine.removeContainer(id);
    }
  }

  return {
    async running() {
      const found = await engine.inspectImage((await own()).Image);
      return image.digestsOf(found?.repoDigests ?? []);
    },
    async hasSpace() {
      const size = (await engine.inspectImage((await own()).Image))?.sizeBytes ?? 0;
      // The root of this container is on the disk of the engine's images.
      const { bavail, bsize } = await statfs('/');
      return bavail * bsize >= IMAGES_OF_SPACE * size;
    },
    has: () => false,
    async stage(target) {
      const old = await own();
      // A container staged earlier may have settings that the provider has changed since.
      await unstage();
      await containers.createLike(old, {
        name: `${name}-next-${target.sequence}`,
        image: image.referenceOf(target),
        labels: labelOf(target),
      });
    },
    unstage,
    async rollbackPoint() {
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

    // The container needs no check: the agent that requested the update created it.
    refusal: async () => null,
    async stopOld({ sequence }, { old_id: id }) {
      // Otherwise the engine would restart the old container after it ends or after a reboot, and two agents would
      // use one home.
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
    async status(target) {
      const found = await findNew(target);
      const { Running = false, Restarting = false } = found?.State ?? {};
      return {
        // A restart by the engine counts as an end.
        isAlive: Running && !Restarting && found?.RestartCount === 0,
        host: found === null ? null : addressOf(found),
      };
    },
    async lastLogLines(target) {
      const found = await findNew(target);
      if (found === null) return '';
      const lines: string[] = [];
      const tail = { tail: LOG_LINES, follow: false };
      const never = new AbortController().signal;
      for await (const { data } of engine.containerLogs(found.Id, tail, never)) {
        lines.push(Buffer.from(data).toString('utf8'));
      }
      return lines.join('').slice(-MAX_LOG_CHARS);
    },
    async removeNew(target) {
      const found = await findNew(target);
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
    async cleanUp(target, { old_id: oldId }) {
      const kept = [oldId, (await requireNew(target)).Id];
      for (const { id, imageId } of await engine.listContainers(ours)) {
        if (kept.includes(id)) continue;
        await engine.removeContainer(id);
        // Does not remove an image that other containers use.
        await engine.removeImage(imageId).catch((error: unknown) => {
          if (!(error instanceof EngineError) || error.kind !== 'conflict') throw error;
        });
      }
    },
    /** Removes the switcher's own container, which ends this process. */
    leave: () => engine.removeContainer(switcher),
  };
}

/** Returns the agent's address. With host networking, that is the host's address. */
function addressOf({ HostConfig, NetworkSettings: { Networks } }: OwnContainer): string | null {
  if (HostConfig.NetworkMode === 'host') return '127.0.0.1';
  return Object.values(Networks).find(({ IPAddress }) => IPAddress !== '')?.IPAddress ?? null;
}
