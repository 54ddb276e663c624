/** Templates that are part of the market. Clients rely on their ids. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Database } from '../../platform/database/tables.ts';
import { CreateTemplate } from './template.schemas.ts';
import { putTemplate } from './template.store.ts';
import { templateContent } from './template-content.ts';

/**
 * The home of root is a volume, so that its data survives edits and changes of the template. The engine copies the
 * image's files in these folders into a new volume. The files of a later image are not copied.
 */
const VOLUMES = ['/workspace', '/root'];

const OFFICIAL = [
  {
    id: '1948937e-5049-47ad-8e26-bcf1a4549d70',
    body: {
      name: 'Podwright base (offline)',
      description: 'A minimal image that every agent has without a registry.',
      docker_image: 'podwright.local/base',
      docker_image_tag: '1',
      category: 'UBUNTU',
      tags: ['offline'],
    },
  },
  {
    id: '5d0c8f3a-6d0e-4c59-9a3e-3f6f0b7c1a01',
    body: {
      name: 'Ubuntu 24.04',
      description: 'Plain Ubuntu 24.04.',
      docker_image: 'ubuntu',
      docker_image_tag: '24.04',
      startup_commands: 'sleep infinity',
      category: 'UBUNTU',
      tags: ['ubuntu'],
    },
  },
  {
    id: '5d0c8f3a-6d0e-4c59-9a3e-3f6f0b7c1a02',
    body: {
      name: 'PyTorch 2.7 (CUDA 12.6)',
      description: 'PyTorch with CUDA and cuDNN.',
      docker_image: 'pytorch/pytorch',
      docker_image_tag: '2.7.1-cuda12.6-cudnn9-runtime',
      startup_commands: 'sleep infinity',
      category: 'PYTORCH',
      tags: ['pytorch', 'cuda'],
    },
  },
] as const;

/** Updates the official templates to those of this release. Runs at every start. */
export async function ensureOfficialTemplates(db: Database, clock: Clock): Promise<void> {
  const nowMs = clock.now();
  for (const { id, body } of OFFICIAL) {
    await putTemplate(db, {
      ...templateContent(CreateTemplate.parse({ ...body, volumes: VOLUMES, is_private: false })),
      id,
      account_id: null,
      used_at: null,
      deleted_at: null,
      created_at: nowMs,
      updated_at: nowMs,
    });
  }
}
