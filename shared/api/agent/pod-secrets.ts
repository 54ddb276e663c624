/** Secrets that a pod finds as files: their names, limits and place. */
import { z } from 'zod';

/** Folder of the secrets in a pod. */
export const SECRETS_MOUNT_POINT = '/run/secrets';
/** Limit of one value. The central API counts bytes of UTF-8; this file's schema counts UTF-16 units. */
export const MAX_SECRET_BYTES = 65_536;
/** Limit of the secrets of one pod. */
export const MAX_POD_SECRETS = 32;
/** Limit of all secrets of one pod as JSON text, which a PUT request must hold beside the spec. */
export const MAX_POD_SECRETS_CHARS = 524_288;

/** A file name that no shell or path treats in a special way. */
export const SecretName = z
  .string()
  .regex(
    /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/,
    'Not 1 to 64 letters, digits, _ . - (first: no . or -)',
  );

export const PodSecret = z.strictObject({
  name: SecretName,
  value: z.string().max(MAX_SECRET_BYTES),
});
export type PodSecret = z.output<typeof PodSecret>;

export const PodSecrets = z.array(PodSecret).max(MAX_POD_SECRETS);
