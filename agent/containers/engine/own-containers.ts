/** Copies, renames and reconfigures the agent's own containers, for updates. */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { createDockerClient } from './docker-client.ts';
import { EngineError } from './engine.ts';
import { Anything, CreatedAnswer } from './engine-answers.ts';
import { createEngineCall, DEADLINES_MS, unless } from './engine-call.ts';

const Texts = z
  .array(z.string())
  .nullish()
  .transform((texts) => texts ?? []);
const Labels = z
  .record(z.string(), z.string())
  .nullish()
  .transform((labels) => labels ?? {});

const Config = z.looseObject({ Env: Texts, Labels });

const Container = z.object({
  Id: z.string(),
  Name: z.string().transform((name) => name.replace(/^\//, '')),
  Image: z.string(),
  RestartCount: z.int(),
  State: z.object({ Running: z.boolean(), Restarting: z.boolean() }),
  Config: Config.extend({ Hostname: z.string().default('') }),
  HostConfig: z.looseObject({
    NetworkMode: z.string(),
    AutoRemove: z.boolean().default(false),
    Binds: Texts,
    RestartPolicy: z.record(z.string(), z.unknown()),
  }),
  Mounts: z.array(
    z.looseObject({ Type: z.string(), Name: z.string().optional(), Destination: z.string() }),
  ),
  NetworkSettings: z.object({
    Networks: z.record(
      z.string(),
      z.object({ IPAddress: z.string(), Aliases: z.array(z.string()).nullish() }),
    ),
  }),
});
export type OwnContainer = z.output<typeof Container>;

const Image = z.object({ Config: Config.nullish() });
const Archive = z.custom<AsyncIterable<unknown>>(
  (value) => value instanceof Object && Symbol.asyncIterator in value,
);

/** Length of a short container id, which is a container's default host name. */
const SHORT_ID_CHARS = 12;

export type OwnContainers = ReturnType<typeof createOwnContainers>;

/** Every method rejects with EngineError. */
export function createOwnContainers(options: { socketPath: string; clock: Clock }) {
  const { socketPath, clock } = options;
  const call = createEngineCall(clock);
  const docker = createDockerClient(socketPath);

  /** Returns the id of the new container, or of an existing one with this name. */
  async function create(name: string, body: Record<string, unknown>): Promise<string> {
    const made = call(DEADLINES_MS.create, CreatedAnswer, async (abortSignal) => {
      // Without `_query` and `_body`, dockerode would also send the whole request in the query string.
      const request = { _query: { name }, _body: body, abortSignal };
      return { Id: (await docker.createContainer(request)).id };
    });
    const id = await unless(['conflict'], null, made);
    const found = id === null ? await find(name) : { Id: id.Id };
    if (found === null) throw new EngineError('conflict', `the name ${name} is taken`);
    return found.Id;
  }

  /** Null if there is no such container. */
  function find(idOrName: string): Promise<OwnContainer | null> {
    const read = call(DEADLINES_MS.inspect, Container, (abortSignal) =>
      docker.getContainer(idOrName).inspect({ abortSignal }),
    );
    return unless(['not_found'], null, read);
  }

  /** Missing is success. */
  async function removeOwn(name: string, labels: Record<string, string>): Promise<void> {
    const found = await find(name);
    if (found === null) return;
    const hasLabels = Object.entries(labels).every(
      ([key, value]) => found.Config.Labels[key] === value,
    );
    if (!hasLabels)
      throw new EngineError('conflict', `the container ${name} belongs to another owner`);
    const gone = call(DEADLINES_MS.create, Anything, (abortSignal) =>
      docker.getContainer(found.Id).remove({ force: true, v: true, abortSignal }),
    );
    await unless(['not_found'], undefined, gone);
  }

  return {
    find,
    /** Creates a container from `image` with the settings of `old`, except those that `old` had from its image. */
    async createLike(
      old: OwnContainer,
      { name, image, labels }: { name: string; image: string; labels: Record<string, string> },
    ): Promise<string> {
      const { Config: imageConfig } = await call(DEADLINES_MS.inspect, Image, () =>
        docker.getImage(old.Image).inspect(),
      );
      const own = ownSettings(old, imageConfig ?? { Env: [], Labels: {} });
      return create(name, {
        ...own,
        Image: image,
        Labels: { ...own.Labels, ...labels },
        HostConfig: { ...old.HostConfig, Binds: bindsOf(old) },
        ...networkOf(old),
      });
    },
    /**
     * Creates a helper container with the image, mounts and network of `old` but without its ports. The engine restarts
     * it whenever it ends.
     */
    createBeside(
      old: OwnContainer,
      {
        name,
        argv,
        labels,
      }: { name: string; argv: readonly string[]; labels: Record<string, string> },
    ): Promise<string> {
      const { NetworkMode, SecurityOpt, Mounts, LogConfig } = old.HostConfig;
      const { User, WorkingDir, Env } = old.Config;
      const RestartPolicy = { Name: 'always' };
      return create(name, {
        Image: old.Image,
        Entrypoint: argv,
        Cmd: [],
        Env,
        User,
        WorkingDir,
        Labels: labels,
        HostConfig: {
          NetworkMode,
          SecurityOpt,
          Mounts,
          LogConfig,
          RestartPolicy,
          Binds: bindsOf(old),
        },
      });
    },
    /**
     * Passes the image's files at `path` to `use` as a tar archive, without running the image. Creates and removes a
     * container; one that a killed agent left under the name is replaced if its labels match.
     */
    async copyOut<T>(
      image: string,
      path: string,
      { name, labels }: { name: string; labels: Record<string, string> },
      use: (archive: AsyncIterable<unknown>) => Promise<T>,
    ): Promise<T> {
      await removeOwn(name, labels);
      const HostConfig = { NetworkMode: 'none' };
      // The engine requires a command, which the image may not have.
      const id = await create(name, { Image: image, Cmd: ['none'], Labels: labels, HostConfig });
      try {
        const archive = await call(DEADLINES_MS.copyOut, Archive, (abortSignal) => {
          const request = { path, abortSignal };
          return docker.getContainer(id).getArchive(request);
        });
        return await use(archive);
      } finally {
        await removeOwn(name, labels);
      }
    },
    /** Rejects with `not_found` if the container is missing. */
    async rename(id: string, name: string): Promise<void> {
      await call(DEADLINES_MS.create, Anything, (abortSignal) =>
        docker.getContainer(id).rename({ name, abortSignal }),
      );
    },
    async setRestartPolicy(id: string, policy: Record<string, unknown>): Promise<void> {
      await call(DEADLINES_MS.create, Anything, (abortSignal) => {
        const request = { _query: {}, _body: { RestartPolicy: policy }, abortSignal };
        return docker.getContainer(id).update(request);
      });
    },
  };
}

type ImageConfig = z.output<typeof Config>;

/**
 * Returns the settings that were chosen for this container, without those that came from its image: the new image has
 * other defaults.
 */
function ownSettings(old: OwnContainer, image: ImageConfig) {
  const { Env, Labels: labels, Hostname, ...others } = old.Config;
  const chosen = Object.entries(others).filter(
    ([name, value]) => name !== 'Image' && !isDeepStrictEqual(value, image[name]),
  );
  const isNamed = Hostname !== '' && !old.Id.startsWith(Hostname.slice(0, SHORT_ID_CHARS));
  return {
    ...Object.fromEntries(chosen),
    ...(isNamed && old.HostConfig.NetworkMode !== 'host' ? { Hostname } : {}),
    Env: Env.filter((each) => !image.Env.includes(each)),
    Labels: Object.fromEntries(
      Object.entries(labels).filter(([name, value]) => image.Labels[name] !== value),
    ),
  };
}

/** Returns all mounts, including anonymous volumes, because those contain data of the agent. */
function bindsOf({ HostConfig: { Binds, Mounts: named }, Mounts }: OwnContainer): string[] {
  const isNamed = (target: string) =>
    Binds.some((bind) => bind.split(':')[1] === target) ||
    (Array.isArray(named) && named.some((mount) => mount?.Target === target));
  const anonymous = Mounts.flatMap(({ Type, Name, Destination }) =>
    Type === 'volume' && Name !== undefined && !isNamed(Destination)
      ? [`${Name}:${Destination}`]
      : [],
  );
  return [...Binds, ...anonymous];
}

/** Keeps network aliases in a user-defined network. The engine assigns new addresses. */
function networkOf({
  Id,
  HostConfig: { NetworkMode },
  NetworkSettings: { Networks },
}: OwnContainer) {
  const aliases = Networks[NetworkMode]?.Aliases?.filter((each) => !Id.startsWith(each)) ?? [];
  if (aliases.length === 0) return {};
  return { NetworkingConfig: { EndpointsConfig: { [NetworkMode]: { Aliases: aliases } } } };
}
