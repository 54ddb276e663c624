/** Secrets in the central API's database, which a diagnosis archive must not contain. */
import { secretValuesIn } from '#shared/api/agent/secrets.ts';
import { textsIn } from '#shared/check/archive/redact.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { deriveKey, type KeyPurpose } from '../accounts/auth/derived-key.ts';
import { signingSecrets } from '../delivery/webhooks/webhook-message.ts';
import { withSealedColumns } from '../platform/database/sealed-columns.ts';
import type { Db } from '../platform/database/tables.ts';

/** Time before the end of every replaced secret. */
const EVERY_REPLACED = 0;

/** A sealed text, and the place that is authenticated with it. */
type Sealed = { purpose: KeyPurpose; sealed: string; place: string };

/**
 * Returns secrets of accounts and pods, environments of templates and pods, secrets of webhooks, and passwords of
 * registries and repositories. Other secrets are not needed: API keys and tokens are recognised by their form, and
 * passwords of users are stored as hashes only. `secret` is the deployment's secret. Throws if a secret cannot be
 * opened, because it could not be redacted.
 */
export async function storedSecrets(db: Db, secret: Uint8Array): Promise<string[]> {
  const open = ({ purpose, sealed, place }: Sealed) =>
    createSealing({ key: deriveKey(secret, purpose), random: systemRandom }).open(sealed, place);
  const key = deriveKey(secret, 'environment-sealing');
  const opened = withSealedColumns(db, createSealing({ key, random: systemRandom }));
  return [...(await sealedTexts(db)).map(open), ...(await environments(opened))];
}

async function sealedTexts(db: Db): Promise<Sealed[]> {
  const [logins, own, ofPods, webhooks, repositories, volumes] = [
    await db.selectFrom('docker_credentials').select(['id', 'password_sealed']).execute(),
    await db.selectFrom('account_secrets').select(['id', 'value_sealed']).execute(),
    await db.selectFrom('pod_secrets').select(['pod_id', 'name', 'value_sealed']).execute(),
    await db.selectFrom('webhooks').select(['id', 'secret_sealed', 'replaced_json']).execute(),
    await db.selectFrom('backup_repositories').select(['id', 'password_sealed']).execute(),
    await db.selectFrom('volumes').select(['id', 'password_sealed']).execute(),
  ];
  const at = (purpose: KeyPurpose, sealed: string, place: string) => ({ purpose, sealed, place });
  return [
    ...logins.map((row) => at('docker-credential-sealing', row.password_sealed, row.id)),
    ...own.map((row) => at('pod-secret-sealing', row.value_sealed, row.id)),
    ...ofPods.map((row) => at('pod-secret-sealing', row.value_sealed, `${row.pod_id} ${row.name}`)),
    ...webhooks.flatMap((row) =>
      signingSecrets(row, EVERY_REPLACED).map((sealed) =>
        at('webhook-secret-sealing', sealed, row.id),
      ),
    ),
    ...repositories.map((row) => at('backup-repository-sealing', row.password_sealed, row.id)),
    ...volumes.map((row) => at('volume-repository-sealing', row.password_sealed, row.id)),
  ];
}

/** Returns the environments of templates, and the secret members of the specifications of pods. */
async function environments(db: Db): Promise<string[]> {
  const templates = await db.selectFrom('templates').select('environment_json').execute();
  const pods = await db
    .selectFrom('pods')
    .select(['spec_json', 'template_json', 'previous_json'])
    .execute();
  const specifications = pods
    .flatMap((pod) => [pod.spec_json, pod.template_json, pod.previous_json ?? 'null'])
    .flatMap((text) => secretValuesIn(JSON.parse(text)));
  const variables = templates.map(({ environment_json: text }): unknown => JSON.parse(text));
  return [...variables, ...specifications].flatMap(textsIn);
}
