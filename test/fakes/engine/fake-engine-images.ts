/** Images of the engine in memory: pulled, built, imported. */
import { NO_PROGRESS } from '#shared/api/agent/images.ts';
import { type ContainerEngine, EngineError } from '../../../agent/containers/engine/engine.ts';
import type { FakeCall } from './fake-engine.ts';
import { hasLabels, type World, type WorldActions } from './fake-engine-world.ts';

type ImageMethods =
  | 'inspectImage'
  | 'resolveDigest'
  | 'pullImage'
  | 'listImages'
  | 'removeImage'
  | 'buildImage'
  | 'importImage';

/** Default properties of an image. */
export const PLAIN = { sizeBytes: 1, onBuild: [], user: '' };

export function createImageMethods(
  world: World,
  { newId }: WorldActions,
  call: FakeCall,
): Pick<ContainerEngine, ImageMethods> {
  const { containers, images, registry, built } = world;

  function pull(reference: string): void {
    const [name = '', wanted] = reference.split('@');
    const entry = [...registry].find(([tagged, digest]) =>
      wanted === undefined
        ? tagged === reference
        : repositoryOf(tagged) === name && digest === wanted,
    );
    if (entry === undefined) throw new EngineError('image_not_found', `no image ${reference}`);
    const [tagged, digest] = entry;
    const repoDigest = `${repositoryOf(tagged)}@${digest}`;
    const image = { id: `sha256:${digest.slice(7)}`, repoDigests: [repoDigest], ...PLAIN };
    images.set(reference, image);
    images.set(repoDigest, image);
  }

  return {
    inspectImage: (reference) =>
      call(
        'inspectImage',
        reference,
        () =>
          images.get(reference) ?? [...images.values()].find(({ id }) => id === reference) ?? null,
      ),
    resolveDigest: (reference) =>
      call('resolveDigest', reference, () => {
        const digest = reference.split('@')[1] ?? registry.get(reference);
        if (digest === undefined) throw new EngineError('image_not_found', `no image ${reference}`);
        return digest;
      }),
    pullImage: (reference, { onProgress }, signal) =>
      call('pullImage', reference, () => {
        if (signal.aborted) throw new EngineError('deadline', 'the pull was aborted');
        onProgress({ ...NO_PROGRESS, layers_total: 1, bytes_total: 1 });
        pull(reference);
        onProgress({
          ...NO_PROGRESS,
          layers_done: 1,
          layers_total: 1,
          bytes_done: 1,
          bytes_total: 1,
        });
      }),
    listImages: ({ labels = {}, unused = false }) =>
      call('listImages', '', () => {
        const named = new Set([...images.values()].map(({ id }) => id));
        const ids = [...built].filter(([, own]) => hasLabels(own, labels)).map(([id]) => id);
        return ids.filter((id) => !unused || !named.has(id));
      }),
    removeImage: (reference) =>
      call('removeImage', reference, () => {
        const image = images.get(reference);
        const id = image?.id ?? reference;
        const isUsed = [...containers.values()].some(({ imageId }) => imageId === id);
        const others = [...images].some(
          ([name, { id: other }]) => name !== reference && other === id,
        );
        if (isUsed && !others) throw new EngineError('conflict', `image ${reference} is in use`);
        images.delete(reference);
        if (!others) built.delete(id);
      }),
    buildImage: ({ context, reference }, onOutput, signal) =>
      call('buildImage', reference, async () => {
        if (signal.aborted) throw new EngineError('deadline', 'the build was aborted');
        let text = '';
        for await (const chunk of context) text += Buffer.from(chunk).toString('utf8');
        onOutput('Step 1/1 : FROM scratch\n');
        // Emulates the failure of a shell command.
        if (/^RUN exit [1-9]/m.test(text))
          throw new EngineError('build', 'returned a non-zero code');
        const labels = [...text.matchAll(/(\S+)="([^"]*)"/g)].map(([, name, value]) => [
          name,
          value,
        ]);
        const id = `sha256:${newId()}`;
        built.set(id, Object.fromEntries(labels));
        images.set(reference, { ...PLAIN, id, repoDigests: [] });
        return id;
      }),
    importImage: (tar, reference) =>
      call('importImage', reference, async () => {
        let sizeBytes = 0;
        for await (const chunk of tar) sizeBytes += chunk.length;
        images.set(reference, { ...PLAIN, id: `sha256:${newId()}`, repoDigests: [], sizeBytes });
      }),
  };
}

function repositoryOf(tagged: string): string {
  return tagged.slice(0, tagged.lastIndexOf(':'));
}
