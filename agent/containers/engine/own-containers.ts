/** Containers of the agent itself: read whole, made anew with the same settings, renamed. Only for updates. */
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

/** Short ids are what containers are called inside where nobody said otherwise. */
const SHORT_ID_CHARS = 12;

export type OwnContainers = ReturnType<typeof createOwnContainers>;

/** Every method rejects with EngineError. */
export function createOwnContainers(options: { socketPath: string; clock: Clock }) {
  const { socketPath, clock } = options;
  const call = createEngineCall(clock);
  const docker = createDockerClient(socketPath);

  /** Its id, whether it was made now or before under the same name. */
  async function create(name: string, body: Record<string, unknown>): Promise<string> {
    const made = call(DEADLINES_MS.create, CreatedAnswer, async (abortSignal) => {
      // Without these two, dockerode would send the whole request in the query string as well.
      const request = { _query: { name }, _body: body, abortSignal };
      return { Id: (await docker.createContainer(request)).id };
    });
    const id = await unless(['conflict'], null, made);
    const found = id === null ? await find(name) : { Id: id.Id };
    if (found === null) throw new EngineError('conflict', `the name ${name} is taken`);
    return found.Id;
  }

  /** Null when there is none. */
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
    const isOwn = Object.entries(labels).every(
      ([key, value]) => found.Config.Labels[key] === value,
    );
    if (!isOwn) throw new EngineError('conflict', `the container ${name} is somebody else's`);
    const gone = call(DEADLINES_MS.create, Anything, (abortSignal) =>
      docker.getContainer(found.Id).remove({ force: true, v: true, abortSignal }),
    );
    await unless(['not_found'], undefined, gone);
  }

  return {
    find,
    /** Another one under `name` from `image`, with the settings of `old` but for what came from its image. */
    async createLike(
      old: OwnContainer,
      { name, image, labels }: { name: string; image: string; labels: Record<string, string> },
    ): Promise<string> {
      const { Config: given } = await call(DEADLINES_MS.inspect, Image, () =>
        docker.getImage(old.Image).inspect(),
      );
      const own = ownSettings(old, given ?? { Env: [], Labels: {} });
      return create(name, {
        ...own,
        Image: image,
        Labels: { ...own.Labels, ...labels },
        HostConfig: { ...old.HostConfig, Binds: bindsOf(old) },
        ...networkOf(old),
      });
    },
    /** A process beside `old`: its image, files and network, none of its ports, started again whenever it ends. */
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
        ...{ Image: old.Image, Entrypoint: argv, Cmd: [], Env, User, WorkingDir, Labels: labels },
        HostConfig: {
          ...{ NetworkMode, SecurityOpt, Mounts, LogConfig, RestartPolicy },
          Binds: bindsOf(old),
        },
      });
    },
    /**
     * What `image` holds at `path`, as a tar archive to be read by `use`; nothing of the image runs. The container that this
     * takes goes again; of one that a kill has left under the name, the labels have to be the same.
     */
    async copyOut<T>(
      image: string,
      path: string,
      { name, labels }: { name: string; labels: Record<string, string> },
      use: (archive: AsyncIterable<unknown>) => Promise<T>,
    ): Promise<T> {
      await removeOwn(name, labels);
      const HostConfig = { NetworkMode: 'none' };
      // An image may lack a command, and one is asked for.
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
    /** Missing is an error: what is renamed is needed. */
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

/** What somebody chose for this container: the rest came from its image, and is the next image's to say. */
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

/** With the volumes that have no name of their own: what lies in them is the agent's too. */
function bindsOf({ HostConfig: { Binds, Mounts: named }, Mounts }: OwnContainer): string[] {
  const isNamed = (target: string) =>
    Binds.some((bind) => bind.split(':')[1] === target) ||
    (Array.isArray(named) && named.some((mount) => mount?.Target === target));
  const nameless = Mounts.flatMap(({ Type, Name, Destination }) =>
    Type === 'volume' && Name !== undefined && !isNamed(Destination)
      ? [`${Name}:${Destination}`]
      : [],
  );
  return [...Binds, ...nameless];
}

/** In a network that somebody made it keeps its other names; addresses are given anew. */
function networkOf({
  Id,
  HostConfig: { NetworkMode },
  NetworkSettings: { Networks },
}: OwnContainer) {
  const aliases = Networks[NetworkMode]?.Aliases?.filter((each) => !Id.startsWith(each)) ?? [];
  if (aliases.length === 0) return {};
  return { NetworkingConfig: { EndpointsConfig: { [NetworkMode]: { Aliases: aliases } } } };
}
