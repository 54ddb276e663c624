/** The image that a validator signed, in this host's container engine. It is identified only by its digest. */
import type { RegistryAuth } from '#shared/api/agent/images.ts';
import { type ContainerEngine, EngineError } from '../containers/engine/engine.ts';
import type { Target } from './update.state.ts';

export type SignedImageOptions = {
  /** AGENT_UPDATE_IMAGE. */
  image: string;
  engine: Pick<ContainerEngine, 'inspectImage' | 'pullImage' | 'removeImage'>;
  /** Reads the login for its registry; throws the problem with the login's file. Undefined: the image is public. */
  readLogin(): RegistryAuth | undefined;
};

export type SignedImage = ReturnType<typeof createSignedImage>;

const LOGIN_REMEDY = 'see AGENT_UPDATE_LOGIN_FILE';

export function createSignedImage({ image, engine, readLogin }: SignedImageOptions) {
  const referenceOf = ({ digest }: Target) => `${image}@${digest}`;
  /** Returns the digests of an image in this repository. */
  const digestsOf = (repoDigests: readonly string[]) => digestsIn(image, repoDigests);

  async function isPresent(target: Target): Promise<boolean> {
    const found = await engine.inspectImage(referenceOf(target));
    return digestsOf(found?.repoDigests ?? []).includes(target.digest);
  }

  return {
    referenceOf,
    digestsOf,
    isPresent,
    /** Pulls the image unless the host has it, and verifies its digest. Aborted by the signal. */
    async fetch(target: Target, signal: AbortSignal): Promise<void> {
      const reference = referenceOf(target);
      if ((await engine.inspectImage(reference)) === null) {
        const options = { auth: readLogin(), onProgress: () => undefined };
        await engine.pullImage(reference, options, signal).catch((error: unknown) => {
          if (!(error instanceof EngineError) || error.kind !== 'image_auth') throw error;
          throw new EngineError(error.kind, `${error.message} (${LOGIN_REMEDY})`, { cause: error });
        });
      }
      if (await isPresent(target)) return;
      throw new EngineError('image_digest_mismatch', `the pulled image is not ${reference}`);
    },
    /** Removes the image unless a container uses it. */
    async drop(target: Target): Promise<void> {
      await engine.removeImage(referenceOf(target)).catch((error: unknown) => {
        if (!(error instanceof EngineError) || error.kind !== 'conflict') throw error;
      });
    },
  };
}

/** Returns the image's digests in the list. The engine lists images of Docker Hub by their short names. */
function digestsIn(image: string, repoDigests: readonly string[]): string[] {
  const short = image.replace(/^docker\.io\/(?:library\/)?/, '');
  return repoDigests.flatMap((each) => {
    const [repository = '', digest = ''] = each.split('@');
    return [image, short].includes(repository) ? [digest] : [];
  });
}

/** This host's platform, as registries name it. */
export const PLATFORM = `linux/${process.arch === 'x64' ? 'amd64' : process.arch}`;
