/** Image methods of ContainerEngine over dockerode. */
import { Readable } from 'node:stream';
import { DOCKER_HUB, type RegistryAuth } from '#shared/api/agent/images.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { BuildRecord, buildFailure, followBuild } from './build-stream.ts';
import { shmSizeOf } from './container-options.ts';
import type { Docker } from './docker-client.ts';
import { type ContainerEngine, EngineError } from './engine.ts';
import { Anything, DistributionAnswer, ImageAnswer, ImageListAnswer } from './engine-answers.ts';
import { DEADLINES_MS, type EngineCall, orAborted, unless } from './engine-call.ts';
import { toEngineError, toPullError } from './engine-errors.ts';
import { bytesOf, jsonLines } from './engine-stream.ts';
import { failOn, followPull, PullRecord } from './pull-stream.ts';

const CPU_PERIOD_US = 100_000;
/** Server address of Docker Hub in a login. */
const HUB_LOGIN_ADDRESS = 'https://index.docker.io/v1/';

type ImageMethods =
  | 'inspectImage'
  | 'resolveDigest'
  | 'pullImage'
  | 'listImages'
  | 'removeImage'
  | 'buildImage'
  | 'importImage';

export function createEngineImages(
  docker: Docker,
  call: EngineCall,
  clock: Clock,
): Pick<ContainerEngine, ImageMethods> {
  return {
    inspectImage: (reference) =>
      unless(
        ['not_found'],
        null,
        call(DEADLINES_MS.inspect, ImageAnswer, () => docker.getImage(reference).inspect()),
      ),

    async resolveDigest(reference, auth, signal) {
      try {
        // dockerode accepts no signal here, so the request continues after its deadline.
        const resolved = call(DEADLINES_MS.registry, DistributionAnswer, () =>
          docker.getImage(withTag(reference)).distribution(loginOf(auth)),
        );
        return await orAborted(resolved, signal);
      } catch (error) {
        if (signal.aborted) throw aborted('the registry query', error);
        throw registryFailure(error);
      }
    },

    async pullImage(reference, { auth, onProgress }, signal) {
      const ended = new AbortController();
      const abortSignal = AbortSignal.any([signal, ended.signal]);
      try {
        const request = { fromImage: withTag(reference), abortSignal };
        const stream = await orAborted(
          docker.createImage(loginOf(auth).authconfig, request),
          signal,
        );
        const records = jsonLines(bytesOf(stream), PullRecord);
        await orAborted(followPull(records, clock, onProgress), signal);
      } catch (error) {
        if (signal.aborted) throw aborted('the pull', error);
        throw registryFailure(error);
      } finally {
        // Closes the connection, which makes the engine cancel the pull.
        ended.abort();
      }
    },

    listImages: ({ labels = {}, unused = false }) =>
      call(DEADLINES_MS.list, ImageListAnswer, (abortSignal) => {
        const label = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
        const filters = { label, ...(unused ? { dangling: ['true'] } : {}) };
        return docker.listImages({ all: !unused, filters: JSON.stringify(filters), abortSignal });
      }),

    async removeImage(reference) {
      const removed = call(DEADLINES_MS.removeImage, Anything, (abortSignal) =>
        docker.getImage(reference).remove({ abortSignal }),
      );
      await unless(['not_found'], undefined, removed);
    },

    async buildImage({ context, reference, network, limits }, onOutput, signal) {
      const ended = new AbortController();
      const abortSignal = AbortSignal.any([signal, ended.signal]);
      const options = {
        t: reference,
        rm: true,
        forcerm: true,
        memory: limits.memoryBytes,
        // Equal to memory: no swap.
        memswap: limits.memoryBytes,
        cpuperiod: CPU_PERIOD_US,
        cpuquota: Math.round(limits.cpuCores * CPU_PERIOD_US),
        shmsize: shmSizeOf(limits),
        networkmode: network ?? 'none',
        abortSignal,
      };
      try {
        const stream = await orAborted(docker.buildImage(Readable.from(context), options), signal);
        const records = jsonLines(bytesOf(stream), BuildRecord);
        return await orAborted(followBuild(records, clock, onOutput), signal);
      } catch (error) {
        if (signal.aborted) throw aborted('the build', error);
        throw buildFailure(error);
      } finally {
        // Closes the connection: the engine ends the current step and removes its container.
        ended.abort();
      }
    },

    async importImage(tar, reference, changes) {
      const [repo = '', tag = ''] = splitTag(reference);
      await call(DEADLINES_MS.import, Anything, async (abortSignal) => {
        const query = { fromSrc: '-', repo, tag, changes };
        const importing = { _query: query, abortSignal };
        const stream = await docker.importImage(Readable.from(tar), importing);
        for await (const record of jsonLines(bytesOf(stream), PullRecord)) failOn(record);
      });
    },
  };
}

function loginOf(auth: RegistryAuth | undefined) {
  if (auth === undefined) return { authconfig: undefined };
  const { host, username, password } = auth;
  const serveraddress = host === DOCKER_HUB ? HUB_LOGIN_ADDRESS : host;
  return { authconfig: { username, password, serveraddress } };
}

/** Appends `:latest` to a reference without tag and digest, of which the engine would pull all tags. */
function withTag(reference: string): string {
  return reference.includes('@') || splitTag(reference).length > 1
    ? reference
    : `${reference}:latest`;
}

/** `[repository, tag]`, or `[repository]`; a colon before the last slash belongs to a port. */
function splitTag(reference: string): string[] {
  const at = reference.lastIndexOf(':');
  if (at === -1 || reference.indexOf('/', at) !== -1) return [reference];
  return [reference.slice(0, at), reference.slice(at + 1)];
}

function aborted(what: string, cause: unknown): EngineError {
  return new EngineError('deadline', `${what} was aborted`, { cause });
}

/**
 * Converts an error of a call that failed before its stream opened. The engine's response has an HTTP status,
 * but the kind of the error depends on its text, which is the registry's message.
 */
function registryFailure(error: unknown): EngineError {
  const known = toEngineError(error);
  const isClassified =
    ['unavailable', 'deadline'].includes(known.kind) || known.kind.startsWith('image_');
  return isClassified ? known : toPullError(known.message, error);
}
